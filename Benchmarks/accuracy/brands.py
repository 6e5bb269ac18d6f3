"""Measures how well methods find the logos of brands in photos, from one clean picture of each logo, without photos of it.

    python3 Benchmarks/accuracy/brands.py RESULTS --photos FOLDER --artwork ARTWORK.json [--methods sift,akaze,matching]
        [--draws 3] [--group 8] [--none 67] [--base MODEL] [--imprint .build/release/imprint] [--limit N]
        [-- OPTIONS OF imprint train-detector]

FOLDER is flickr_logos_27_dataset (Kalantidis et al., "Scalable triangulation-based logo recognition", ICMR 2011), for example of the public
repository satojkovic/DeepLogo. ARTWORK.json names the picture of each brand: {"artwork": {BRAND: {"file": NAME, "box": [x0, y0, x1, y1]}}}.
The script skips brands without a picture, photos that show several brands, the pictures themselves, and the queries without a brand after
the first --none.

Each draw takes --group random brands, so that all draws together cover every brand. A method looks for the brands of a draw in the photos
of these brands and in the photos without a brand. Methods:

- sift, akaze: OpenCV's features with the ratio test (0.8) and a homography by RANSAC; the score is the number of inliers. The picture has
  at least 512 pixels on its longer side. There is no default threshold, so the accuracy and the false alarms at it are empty.
- matching: `imprint detect --artwork` with the pictures, and --base if it is given, without training. A photo shows the logo with the
  highest confidence if that is at least 0.5.
- training: `imprint train-detector` with the pictures and the given options, and `imprint detect`, with the same decision.

Prints Markdown tables: the AUC of each brand against the photos without a brand, the accuracy with the threshold of the method and with the
best threshold, and the false alarms, each with a bootstrap interval over photos. The best threshold is chosen on the same photos, so its
accuracy is an upper bound. RESULTS keeps the scores, so that an interrupted run continues. Needs numpy, Pillow and opencv-python-headless.
"""

import argparse
import functools
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from folds import parse_arguments
from intervals import percentiles

NONE = "none"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--photos", type=lambda path: Path(path).resolve(), required=True)
    parser.add_argument("--artwork", type=Path, required=True)
    parser.add_argument("--methods", default="sift,akaze,matching", type=lambda text: text.split(","))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--group", type=int, default=8, help="the number of brands of a draw")
    parser.add_argument("--none", type=int, default=67, help="the number of photos without a brand")
    parser.add_argument("--base", help="the base model whose features the method `matching` compares, instead of Imprint's features")
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--limit", type=int, help="the largest number of photos of a brand, for a test of the script")
    args, options = parse_arguments(parser)
    unknown = set(args.methods) - {"sift", "akaze", "matching", "training"}
    if unknown:
        sys.exit(f"The method {sorted(unknown)[0]} is unknown; expected sift, akaze, matching or training.")

    artwork = json.loads(args.artwork.read_text())["artwork"]
    labels = read_labels(args.photos, artwork, args.none, args.limit)
    if args.draws * args.group < len(artwork) or args.group > len(artwork):
        sys.exit(f"{args.draws} draws of {args.group} brands do not fit the {len(artwork)} brands with artwork. Change --draws or --group.")
    draws = draw_groups(sorted(artwork), args.group, args.draws)
    args.results.mkdir(parents=True, exist_ok=True)
    counts = Counter(labels.values())
    without = [label for label in [*artwork, NONE] if not counts[label]]
    if without:
        sys.exit(f"{args.photos} has no photos of {', '.join(without)}.")
    print(f"{len(labels)} photos: {counts[NONE]} of none, and {min(counts.values())} to {max(counts.values())} of each brand\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        pictures = write_pictures(artwork, args.photos, Path(folder))
        runs = {}
        for method in args.methods:
            runs[method] = []
            for number, brands in enumerate(draws, 1):
                photos = {file: label for file, label in labels.items() if label in brands or label == NONE}
                key = {"artwork": {brand: artwork[brand] for brand in brands}, "photos": photos}
                if method in ("matching", "training"):
                    key.update(options=options if method == "training" else [digest(args.base)], program=digest(args.imprint))
                parts = [method, Path(args.base).stem if args.base and method == "matching" else "", str(number)]
                scores = cached(
                    args.results / f"{'-'.join(filter(None, parts))}.json", key,
                    lambda: measure(method, args, options, brands, pictures, photos))
                runs[method].append((brands, photos, scores))
    report(runs)


def read_labels(folder, artwork, none_count, limit):
    """Returns the label of each photo: a brand with artwork, or NONE."""
    found = defaultdict(set)
    none = []
    queries = folder / "flickr_logos_27_dataset_query_set_annotation.txt"
    for line in queries.read_text().splitlines():
        file, brand = line.split("\t")
        if brand.lower() == NONE:
            none.append(file)
        else:
            found[file].add(brand)
    for line in (folder / "flickr_logos_27_dataset_training_set_annotation.txt").read_text().splitlines():
        file, brand = line.split()[:2]
        found[file].add(brand)
    used = {picture["file"] for picture in artwork.values()}
    labels = {}
    counts = Counter()
    for file in sorted(found):
        (brand, *others) = found[file]
        if others or brand not in artwork or file in used or (limit and counts[brand] >= limit):
            continue
        counts[brand] += 1
        labels[file] = brand
    labels.update({file: NONE for file in none[:none_count][:limit]})
    return labels


def draw_groups(brands, size, count):
    """Returns random groups of brands. Every brand is in a group if the groups are large enough."""
    generator = random.Random(1)
    groups, waiting = [], []
    for _ in range(count):
        if len(waiting) < size:
            others = [brand for brand in brands if brand not in waiting]
            generator.shuffle(others)
            waiting += others
        groups.append(sorted(waiting[:size]))
        waiting = waiting[size:]
    return groups


def write_pictures(artwork, photos, folder):
    """Crops the picture of each brand and returns the files."""
    from PIL import Image

    files = {}
    for brand, picture in artwork.items():
        files[brand] = folder / f"{brand}.png"
        with Image.open(image_file(photos, picture["file"])) as image:
            image.convert("RGB").crop(picture["box"]).save(files[brand])
    return files


def digest(file):
    """Returns the SHA-256 of a file; None without one, and the text if it is the name of an installed base model."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else file


def image_file(photos, name):
    return photos / "flickr_logos_27_dataset_images" / name


def cached(file, key, compute):
    """Returns the cached result for a key in a file; if it is missing, computes and stores it."""
    if file.exists():
        stored = json.loads(file.read_text())
        if stored["key"] == key:
            return stored["result"]
    result = compute()
    # Renamed, so that an interruption leaves no incomplete file.
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps({"key": key, "result": result}))
    temporary.rename(file)
    return result


def measure(method, args, options, brands, pictures, photos):
    """Returns {"scores": {file: {brand: score}}, "threshold": the threshold of the method, or None, "seconds": the time of training and of a photo}."""
    if method in ("matching", "training"):
        return measure_imprint(method, args, options, brands, pictures, photos)
    return measure_features(method, args.photos, brands, pictures, photos)


def measure_imprint(method, args, options, brands, pictures, photos):
    artwork = [word for brand in brands for word in ("--artwork", f"{brand}={pictures[brand]}")]
    with tempfile.TemporaryDirectory() as folder:
        model, listing = Path(folder, "model.imprint"), Path(folder, "photos.txt")
        listing.write_text("".join(f"{image_file(args.photos, file)}\n" for file in photos))
        start = time.monotonic()
        if method == "training":
            subprocess.run([args.imprint, "train-detector", *artwork, "--output", model, *options], check=True, stdout=subprocess.DEVNULL)
            search = [model]
        else:
            search = [*artwork, *(["--base", args.base] if args.base else [])]
        trained = time.monotonic()
        command = [args.imprint, "detect", *search, "--threshold", "0", "--json", "--files-from", listing]
        lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    scores = {}
    for line in map(json.loads, lines):
        # The confidences of a photo, or the most confident detection of each label: detections come by descending confidence.
        scores[Path(line["file"]).name] = line.get("confidences") or {
            found["label"]: found["confidence"] for found in reversed(line["detections"])}
    seconds = [trained - start, (time.monotonic() - trained) / len(photos)]
    return {"scores": scores, "threshold": 0.5, "seconds": seconds}


def measure_features(method, folder, brands, pictures, photos):
    import cv2

    detector = cv2.SIFT_create() if method == "sift" else cv2.AKAZE_create()
    matcher = cv2.BFMatcher(cv2.NORM_L2 if method == "sift" else cv2.NORM_HAMMING)

    def features(file, longer_side=None):
        image = cv2.imread(str(file), cv2.IMREAD_GRAYSCALE)
        if longer_side and max(image.shape) < longer_side:
            scale = longer_side / max(image.shape)
            image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
        return detector.detectAndCompute(image, None)

    templates = {brand: features(pictures[brand], 512) for brand in brands}
    start = time.monotonic()
    scores = {}
    for file in photos:
        found = features(image_file(folder, file))
        scores[file] = {brand: inliers(cv2, matcher, template, found) for brand, template in templates.items()}
    return {"scores": scores, "threshold": None, "seconds": [0, (time.monotonic() - start) / len(photos)]}


def inliers(cv2, matcher, template, photo):
    """Returns the number of matches that agree with one homography."""
    import numpy

    (points, descriptors), (photo_points, photo_descriptors) = template, photo
    if descriptors is None or photo_descriptors is None or len(photo_descriptors) < 2:
        return 0
    pairs = [pair for pair in matcher.knnMatch(descriptors, photo_descriptors, k=2) if len(pair) == 2]
    good = [first for first, second in pairs if first.distance < 0.8 * second.distance]
    if len(good) < 4:
        return len(good)
    source = numpy.float32([points[match.queryIdx].pt for match in good])
    target = numpy.float32([photo_points[match.trainIdx].pt for match in good])
    _, mask = cv2.findHomography(source, target, cv2.RANSAC, 5.0)
    return int(mask.sum()) if mask is not None else 4


def report(runs):
    """Prints the tables."""
    brands = sorted({brand for run in runs.values() for group, _, _ in run for brand in group})
    print("| AUC | " + " | ".join(runs) + " |")
    print("|---" * (len(runs) + 1) + "|")
    for brand in brands:
        cells = []
        for run in runs.values():
            draws = [(photos, result["scores"]) for group, photos, result in run if brand in group]
            cells.append(interval(lambda weigh: mean(brand_auc(brand, *draw, weigh) for draw in draws), "{:.2f}"))
        print(f"| {brand} | " + " | ".join(cells) + " |")
    rows = {
        "mean AUC": lambda run, weigh: mean(brand_auc(brand, photos, result["scores"], weigh) for group, photos, result in run for brand in group),
        "accuracy": lambda run, weigh: mean(accuracy(photos, result["scores"], result["threshold"], weigh) for _, photos, result in run),
        "accuracy, best threshold": lambda run, weigh: mean(best_accuracy(photos, result["scores"], weigh) for _, photos, result in run),
        "false alarms": lambda run, weigh: mean(false_alarms(photos, result["scores"], result["threshold"], weigh) for _, photos, result in run),
    }
    for name, measure in rows.items():
        form = "{:.3f}" if name == "mean AUC" else "{:.0%}"
        print(f"| {name} | " + " | ".join(interval(lambda weigh, run=run: measure(run, weigh), form) for run in runs.values()) + " |")
    for index, name in enumerate(["training, seconds", "seconds per photo"]):
        print(f"| {name} | " + " | ".join(f"{mean(result['seconds'][index] for _, _, result in run):.2f}" for run in runs.values()) + " |")


def mean(values):
    values = list(values)
    return None if not values or None in values else sum(values) / len(values)


def interval(measure, form, resamples=200):
    """Returns a metric and its 95 % bootstrap interval over photos; `measure` receives the weight of a photo."""
    estimate = measure(lambda file: 1)
    if estimate is None:
        return "–"
    low, high = percentiles(measure(lambda file, seed=seed: bootstrap_weight(seed, file)) for seed in range(resamples))
    return f"{form.format(estimate)} ({form.format(low)} to {form.format(high)})"


@functools.cache
def bootstrap_weight(seed, file):
    """Returns the weight of a photo in a sample of the Bayesian bootstrap (Rubin, 1981), which is the same in all draws."""
    return random.Random(f"{seed} {file}").expovariate(1)


def brand_auc(brand, photos, scores, weigh):
    """Returns the probability that a photo of the brand has a higher score than a photo without a brand; ties count half."""
    samples = sorted((scores[file].get(brand, 0), label == brand, weigh(file)) for file, label in photos.items() if label in (brand, NONE))
    wins = positives = negatives = index = 0
    while index < len(samples):
        sums = {True: 0.0, False: 0.0}
        score = samples[index][0]
        while index < len(samples) and samples[index][0] == score:
            sums[samples[index][1]] += samples[index][2]
            index += 1
        wins += sums[True] * (negatives + sums[False] / 2)
        positives += sums[True]
        negatives += sums[False]
    return wins / (positives * negatives)


def best(scores):
    """Returns the brand with the highest score, and the score."""
    return max(scores.items(), key=lambda item: item[1], default=(NONE, 0))


def accuracy(photos, scores, threshold, weigh):
    if threshold is None:
        return None
    return decide(photos, scores, weigh, lambda score: score >= threshold)


def decide(photos, scores, weigh, is_shown):
    correct = total = 0
    for file, label in photos.items():
        brand, score = best(scores[file])
        weight = weigh(file)
        correct += weight * ((brand if is_shown(score) else NONE) == label)
        total += weight
    return correct / total


def best_accuracy(photos, scores, weigh):
    """Returns the accuracy with the threshold that maximizes it."""
    samples = sorted(((*reversed(best(scores[file])), label, weigh(file)) for file, label in photos.items()), reverse=True)
    correct = sum(weight for _, _, label, weight in samples if label == NONE)
    total = sum(weight for *_, weight in samples)
    highest = correct
    for index, (score, brand, label, weight) in enumerate(samples):
        correct += weight * ((brand == label) - (label == NONE))
        if index + 1 == len(samples) or samples[index + 1][0] != score:
            highest = max(highest, correct)
    return highest / total


def false_alarms(photos, scores, threshold, weigh):
    if threshold is None:
        return None
    none = {file: weigh(file) for file, label in photos.items() if label == NONE}
    return sum(weight for file, weight in none.items() if best(scores[file])[1] >= threshold) / sum(none.values())


if __name__ == "__main__":
    main()
