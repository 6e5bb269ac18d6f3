"""Measures how much a few photos of a logo add to a detector that is trained from its artwork.

    python3 Benchmarks/accuracy/few_photos.py PHOTOS RESULTS [--counts 1,5,20] [--boxes BOXES.json] [--imprint .build/release/imprint] \\
        [--folds 5] [--only 1,2] [--seeds 1,2,3] [--groups GROUPS.json] [--threads N] \\
        -- --artwork LABEL=FILE [OPTIONS OF imprint train-detector]

Trains on the artwork, on the photos of the other folds without the logo, and on 0 and --counts photos of the logo. These photos are drawn at random
for each seed, and never from the evaluated fold. Each draw contains the smaller ones. With photos of the logo, training has 25 % more steps, so one
row has this number of steps without photos. The photos have only a label. With --boxes, further rows train with the boxes of the same photos.
BOXES.json is a COCO file that names photos by their paths relative to PHOTOS, and the logo by its label; each photo of the logo needs a box.
Prints a Markdown table with bootstrap intervals over groups. Differences are paired by photo. RESULTS/table.md has the finished rows while the
script runs, and RESULTS keeps them, so that an interrupted run continues.
"""

import argparse
import json
import random
import sys
from pathlib import Path

from comparison import Row, add_arguments, artwork_labels, compare, numbers, parsed_options, shows
from folds import link, parse_arguments


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--counts", type=numbers, default=[1, 5, 20], help="the numbers of photos of the logo")
    parser.add_argument("--boxes", type=Path, help="a COCO file with the boxes of the photos of the logo")
    args, options = parse_arguments(parser)
    labels = artwork_labels(options)
    if len(labels) != 1:
        sys.exit(f"The options have artwork of {', '.join(sorted(labels))}, expected one label.")
    if min(args.counts) < 1:
        sys.exit(f"--counts has {min(args.counts)}, expected numbers of at least 1.")
    boxes = read_boxes(args.boxes) if args.boxes else None

    # Without photos of the logo, the standard phases have 8,000 steps instead of 10,000.
    epochs = parsed_options(options).epochs
    more = without_epochs(options) + ["--epochs", str(round(epochs * 1.25))]
    rows = [
        Row("artwork only", preparation(args, labels, options, 0)),
        Row("artwork only, 25 % more steps", preparation(args, labels, more, 0))]
    for count in args.counts:
        name = f"{count} photo{'s' if count > 1 else ''}"
        rows.append(Row(name, preparation(args, labels, options, count)))
        if boxes:
            rows.append(Row(f"{name} with boxes", preparation(args, labels, options, count, boxes)))
    compare(args, options, rows)


def without_epochs(options):
    """Returns the options without --epochs."""
    kept = list(options)
    for index in reversed(range(len(kept))):
        if kept[index] == "--epochs":
            del kept[index : index + 2]
        elif kept[index].startswith("--epochs="):
            del kept[index]
    return kept


def preparation(args, labels, options, count, boxes=None):
    """Returns the function that links the photos without the logo, and `count` photos of the logo."""
    def prepare(folder, train, seed):
        chosen = draw([file for file in train if shows(file, labels)], count, seed)
        plain = [file for file in train if not shows(file, labels)] + (chosen if boxes is None else [])
        link(plain, args.photos, folder / "train")
        more = []
        if boxes is not None:
            link(chosen, args.photos, folder / "boxes")
            subset = annotations([str(Path(file).relative_to(args.photos)) for file in chosen], boxes, args.boxes)
            (folder / "boxes" / "boxes.json").write_text(json.dumps(subset))
            more = ["--annotations", str(folder / "boxes" / "boxes.json")]
        return ["--photos", str(folder / "train"), *more, *options]

    return prepare


def draw(photos, count, seed):
    """Returns random photos; a larger draw of the same seed contains a smaller one."""
    if count > len(photos):
        sys.exit(f"--counts has {count}, expected at most the {len(photos)} photos of the logo in the other folds.")
    return random.Random(f"{seed} few photos").sample(sorted(photos), len(photos))[:count]


def read_boxes(file):
    """Returns the contents of a COCO file, with the image of each path and the annotations of each image."""
    contents = json.loads(file.read_text())
    images = {image["file_name"]: image for image in contents["images"]}
    by_image = {}
    for annotation in contents["annotations"]:
        by_image.setdefault(annotation["image_id"], []).append(annotation)
    return contents, images, by_image


def annotations(files, boxes, source):
    """Returns the part of a COCO file that describes some photos."""
    contents, images, by_image = boxes
    for file in files:
        if file not in images or not by_image.get(images[file]["id"]):
            sys.exit(f"{source} has no box for {file}, expected at least one.")
    chosen = [images[file] for file in files]
    return {
        "images": chosen, "annotations": [entry for image in chosen for entry in by_image[image["id"]]],
        "categories": contents["categories"]}


if __name__ == "__main__":
    main()
