"""Compares scores that distinguish photos of unknown subjects from photos of the labels that a classifier was trained on.

    python3 Benchmarks/accuracy/unknown_photos.py NETWORK.onnx CLOTHING --far PHOTOS --far PHOTOS [--cache FOLDER] \\
        [--unknown outwear,shorts,skirt --unknown hat,pants,shoes ...] [--mean 127] [--scale 0.0078125]

CLOTHING has the folders train, validation and test with one sub-folder per label. In each split, the labels of one --unknown are withheld:
the scores are fitted to the training photos of the other labels, and to a logistic regression on their features. All other photos of the
known labels are the held-out photos. The photos of the withheld labels ("near") and the --far folders are unknown. With --unknown "", all
labels are known.

A feature is the input of the last dense layer of NETWORK.onnx, which any export of a classifier has (imprint export --to onnx). For each
score and unknown set, the table has the share of unknown photos that are accepted if 95 % of the held-out photos are (FPR95), and the area
under the ROC curve (AUROC), in percent, as means over the splits. Scores:

- probability: the maximum softmax probability (Hendrycks and Gimpel, 2017)
- energy: logsumexp of the logits (Liu et al., 2020)
- Mahalanobis: the distance to the nearest class mean, with a shared covariance and shrinkage (Lee et al., 2018), in all or in 128
  principal components; relative Mahalanobis subtracts the distance to the mean of all photos (Ren et al., 2021)
- residual: the distance from the subspace of 128 principal components
- cosine: the cosine distance to the nearest class mean; "512" computes the means from at most 512 photos, as imprint train does
- k-NN: the distance to the k-th nearest of at most 512 training photos, balanced over the labels, after L2 normalization (Sun et al., 2022);
  "centred" subtracts the mean feature first; "all" compares with every training photo

Needs NumPy, Pillow, onnx, ONNX Runtime and scikit-learn. --cache keeps the features of each folder.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from PIL import Image, ImageOps
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

SPLITS = ["outwear,shorts,skirt", "hat,pants,shoes", "dress,longsleeve,t-shirt", "shirt,shoes,skirt"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", type=Path)
    parser.add_argument("clothing", type=Path)
    parser.add_argument("--far", type=Path, action="append", default=[])
    parser.add_argument("--unknown", action="append", help="the labels to withhold in a split, separated by commas")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--mean", type=float, default=127)
    parser.add_argument("--scale", type=float, default=0.0078125)
    args = parser.parse_args()

    features, files = photo_features(args, args.clothing)
    parts = np.array([Path(file).parts[0] for file in files])
    labels = np.array([Path(file).parts[1] for file in files])
    far = {folder.name: photo_features(args, folder)[0] for folder in args.far}
    results = {}
    for seed, withheld in enumerate(args.unknown or SPLITS):
        is_known = ~np.isin(labels, withheld.split(","))
        training, held_out = is_known & (parts == "train"), is_known & (parts != "train")
        unknown = {"near": features[~is_known], **far} if withheld else far
        for name, score in scores(features[training], labels[training], np.random.default_rng(seed)):
            known = score(features[held_out])
            row = [metrics(known, score(photos)) for photos in unknown.values()]
            results.setdefault(name, []).append(row)
    names = list(unknown)
    print("| score | " + " | ".join(f"{name}: FPR95 | AUROC" for name in names) + " |")
    print("|---" * (1 + 2 * len(names)) + "|")
    for name, rows in results.items():
        print(f"| {name} | " + " | ".join(f"{100 * value:.1f}" for value in np.mean(rows, axis=0).ravel()) + " |")


def metrics(known, unknown):
    """Returns the share of unknown photos that are accepted at 95 % acceptance of known ones, and the AUROC. High scores are unknown."""
    accepted = np.mean(unknown <= np.quantile(known, 0.95))
    truth = np.concatenate([np.zeros(len(known)), np.ones(len(unknown))])
    return accepted, roc_auc_score(truth, np.concatenate([known, unknown]))


def photo_features(args, folder):
    """Returns the features of all photos below a folder, and the paths of the photos."""
    files = sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    key = hashlib.sha256("\n".join([str(args.network), str(folder), *files]).encode()).hexdigest()[:16]
    cached = args.cache and args.cache / f"{folder.name}-{key}.npy"
    if cached and cached.exists():
        return np.load(cached), files
    model = onnx.load(args.network)
    head = [node for node in model.graph.node if node.op_type in ("Gemm", "MatMul")][-1].input[0]
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(head))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    name = session.get_inputs()[0].name
    side = session.get_inputs()[0].shape[2]
    features = np.array(
        [session.run([head], {name: prepared(folder / file, side, args)})[0].ravel() for file in files], np.float32)
    if cached:
        args.cache.mkdir(parents=True, exist_ok=True)
        np.save(cached, features)
    return features, files


def prepared(file, side, args):
    """Returns a photo as a batch of one: the square in its centre, scaled and normalized."""
    image = ImageOps.exif_transpose(Image.open(file)).convert("RGB")
    image = ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR)
    return ((np.asarray(image, np.float32) - args.mean) * args.scale).transpose(2, 0, 1)[None]


def normalized(values):
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)


def balanced(labels, count, random):
    """Returns the indices of a random sample that is balanced over the labels."""
    shuffled = [random.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
    turns = [indices[turn] for turn in range(max(map(len, shuffled))) for indices in shuffled if turn < len(indices)]
    return np.array(turns[:count])


def inverse_covariance(centred):
    """Returns the inverse of the covariance, with a tenth of the mean variance for shrinkage."""
    covariance = centred.T @ centred / len(centred)
    size = len(covariance)
    return np.linalg.inv(0.9 * covariance + 0.1 * np.trace(covariance) / size * np.eye(size))


def scores(features, labels, random):
    """Yields the name and the function of each score, fitted to training photos."""
    regression = LogisticRegression(C=0.1, max_iter=200).fit(features, labels)

    def energy(photos):
        logits = photos @ regression.coef_.T + regression.intercept_
        if len(names) == 2:
            logits = logits * [-0.5, 0.5]
        highest = logits.max(axis=1)
        return -highest - np.log(np.exp(logits - highest[:, None]).sum(axis=1))

    names, index = np.unique(labels, return_inverse=True)
    yield "maximum probability", lambda photos: -regression.predict_proba(photos).max(axis=1)
    yield "energy", energy
    means = np.array([features[index == label].mean(axis=0) for label in range(len(names))])
    mean = features.mean(axis=0)
    principal = np.linalg.eigh((features - mean).T @ (features - mean))[1][:, ::-1][:, :128]
    for basis, suffix in ((np.eye(len(mean), dtype=np.float32), ""), (principal, ", 128 components")):
        within = inverse_covariance((features - means[index]) @ basis)
        total = inverse_covariance((features - mean) @ basis)

        def distance(photos, center, inverse, basis=basis):
            difference = (photos - center) @ basis
            return (difference @ inverse * difference).sum(axis=1)

        def nearest(photos, within=within, distance=distance):
            return np.min([distance(photos, center, within) for center in means], axis=0)

        yield "Mahalanobis" + suffix, nearest
        yield "relative Mahalanobis" + suffix, lambda photos, nearest=nearest, distance=distance, total=total: nearest(
            photos) - distance(photos, mean, total)
    yield "residual, 128 components", lambda photos: np.linalg.norm(
        (photos - mean) - (photos - mean) @ principal @ principal.T, axis=1)
    yield "cosine", lambda photos: -(normalized(photos) @ normalized(means).T).max(axis=1)
    yield "cosine, centred", lambda photos: -(normalized(photos - mean) @ normalized(means - mean).T).max(axis=1)
    for count, suffix in ((512, ""), (len(labels), ", all")):
        sample = balanced(labels, count, random)
        chosen = features[sample]
        if count == 512:
            few = np.array([chosen[index[sample] == label].mean(axis=0) for label in range(len(names))])
            yield "cosine, 512", lambda photos, few=few: -(normalized(photos) @ normalized(few).T).max(axis=1)
        for origin, centred in ((np.zeros_like(mean), ""), (chosen.mean(axis=0), " centred")):
            for k in (1, 3, 5, 10):
                yield f"{k}-NN{centred}{suffix}", lambda photos, k=k, origin=origin, chosen=chosen: -np.partition(
                    normalized(photos - origin) @ normalized(chosen - origin).T, -k, axis=1)[:, -k]


if __name__ == "__main__":
    main()
