"""Measures detectors that are trained on photos with boxes, with and without a pretrained backbone.

    python3 Benchmarks/accuracy/photo_boxes.py RESULTS --photos FOLDER --artwork ARTWORK.json [--imprint .build/release/imprint]
        --row "NAME: OPTIONS OF imprint train-detector" [--row …] [--seed 1]

FOLDER and ARTWORK.json are those of brands.py; the script uses only the brands of ARTWORK.json. The training photos of the data set have
boxes: about 30 photos of each brand. At random, two thirds of them are for training, and the others are for the test. For each --row, the
script trains a detector and evaluates it on the test photos. For example:

    --row "random parameters: --epochs 5" --row "EfficientNet-Lite0: --base efficientnet-lite0 --epochs 2"

Prints a Markdown table. RESULTS keeps the photos, the models and the evaluations, so that an interrupted run continues. Needs Pillow.
"""

import argparse
import json
import os
import random
import shlex
import sys
from collections import defaultdict
from pathlib import Path

from PIL import Image

from folds import run_json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=lambda path: Path(path).resolve())
    parser.add_argument("--photos", type=lambda path: Path(path).resolve(), required=True)
    parser.add_argument("--artwork", type=Path, required=True)
    parser.add_argument("--row", type=row, action="append", required=True, help="a name and options, separated by a colon")
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the split")
    args = parser.parse_args()

    brands = sorted(json.loads(args.artwork.read_text())["artwork"])
    boxes = read_boxes(args.photos, set(brands))
    training, test = split(boxes, args.seed)
    for name, files in ("train", training), ("test", test):
        write_coco(args.results / name, files, boxes, brands, args.photos / "flickr_logos_27_dataset_images")
    print(f"{len(training)} training photos and {len(test)} test photos of {len(brands)} brands\n", flush=True)
    print("| detector | mAP@.5, 95 % interval | mAP@.75 | mAP@.5:.95 | training |\n|---|---|---|---|---|", flush=True)
    for name, options in args.row:
        found = measure(args, name, options)
        low, high = found["meanAveragePrecision50Interval"]
        print(
            f"| {name} | {found['meanAveragePrecision50']:.3f} ({low:.3f} to {high:.3f}) | {found['meanAveragePrecision75']:.3f} "
            f"| {found['meanAveragePrecision']:.3f} | {found['seconds']:.0f} s |", flush=True)


def row(text):
    """Returns the name and the options of a row."""
    name, colon, options = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"expected NAME: OPTIONS, found {text}")
    return name.strip(), shlex.split(options)


def read_boxes(folder, brands):
    """Returns the brands and the corners of the boxes of each photo that shows only these brands."""
    boxes = defaultdict(set)
    for line in (folder / "flickr_logos_27_dataset_training_set_annotation.txt").read_text().splitlines():
        file, brand, _, *corners = line.split()
        boxes[file].add((brand, *map(int, corners)))
    return {file: sorted(found) for file, found in boxes.items() if {one[0] for one in found} <= brands}


def split(boxes, seed):
    """Returns the files for training and for the test: two thirds and one third of the photos of each brand."""
    files = defaultdict(list)
    for file in sorted(boxes):
        files[boxes[file][0][0]].append(file)
    generator = random.Random(seed)
    training, test = [], []
    for brand in sorted(files):
        generator.shuffle(files[brand])
        count = len(files[brand]) * 2 // 3
        training += files[brand][:count]
        test += files[brand][count:]
    return sorted(training), sorted(test)


def write_coco(folder, files, boxes, brands, photos):
    """Links the photos into a folder, with a COCO file of their boxes."""
    folder.mkdir(parents=True, exist_ok=True)
    images, annotations = [], []
    for number, file in enumerate(files, 1):
        if not (folder / file).exists():
            os.symlink(photos / file, folder / file)
        with Image.open(photos / file) as image:
            width, height = image.size
        images.append({"id": number, "file_name": file, "width": width, "height": height})
        for brand, x0, y0, x1, y1 in boxes[file]:
            (x0, x1), (y0, y1) = ([min(max(value, 0), limit) for value in pair] for pair, limit in (((x0, x1), width), ((y0, y1), height)))
            if x1 - x0 < 4 or y1 - y0 < 4:  # The data set has a few empty boxes.
                continue
            annotations.append({
                "id": len(annotations) + 1, "image_id": number, "category_id": brands.index(brand) + 1,
                "bbox": [x0, y0, x1 - x0, y1 - y0], "area": (x1 - x0) * (y1 - y0), "iscrowd": 0})
    categories = [{"id": number, "name": brand} for number, brand in enumerate(brands, 1)]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "boxes.json").write_text(json.dumps(content))


def measure(args, name, options):
    """Trains and evaluates a detector, and returns the metrics with the seconds of training; results that exist are reused."""
    stem = "".join(letter if letter.isalnum() else "-" for letter in name)
    file, settings = args.results / f"{stem}.json", {"options": options, "seed": args.seed}
    if file.exists():
        earlier = json.loads(file.read_text())
        if earlier["settings"] != settings:
            sys.exit(f"{file} has other options: {earlier['settings']}. Choose another folder or another name.")
        return earlier["metrics"]
    model = args.results / f"{stem}.imprint"
    finished = run_json(
        args.imprint, "train-detector", "--annotations", str(args.results / "train/boxes.json"), "--output", str(model),
        "--json", *options)[-1]
    metrics = run_json(args.imprint, "evaluate", str(model), "--annotations", str(args.results / "test/boxes.json"), "--json")[-1]
    metrics["seconds"] = finished["seconds"]
    file.write_text(json.dumps({"settings": settings, "metrics": metrics}))
    return metrics


if __name__ == "__main__":
    main()
