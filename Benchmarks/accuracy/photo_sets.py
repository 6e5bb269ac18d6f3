"""Splits a folder of photos into a training folder and a test folder, at random with a seed.

    python3 Benchmarks/accuracy/photo_sets.py SOURCE --output DIR [--test 0.25] [--seed 1] [--block 1] [--limit N]

SOURCE is a public photo set, unpacked from its repository: the label of a photo is the name of the folder that it is in. Other folders do
not matter, so SOURCE/train/cats and SOURCE/test/cats are one label. Writes DIR/train/LABEL and DIR/test/LABEL, with symbolic links to the
photos, and prints one JSON line with the numbers of photos. Each label has the same fraction of test photos.

Copies of a photo (files with the same bytes) count once. Photos that SOURCE has under several labels are excluded. With --block, that many
photos with consecutive file names stay in one set, which is necessary for the frames of a video. The same files, options and seed give the
same split. --limit takes only about that many photos, for a test of the scripts.

Any folder of photos works. The figures of this project use these repositories:

| repository | folder | photos, labels | licence |
|---|---|---|---|
| alexeygrigorev/clothing-dataset-small | train, validation and test | 3,781, 10 | CC0 |
| marcusklasson/GroceryStoreDataset | dataset/train, val and test | 5,421, 81 | MIT |
| cardstdani/WasteClassificationNeuralNetwork | the photos of TrashNet: names such as glass12.jpg | 2,398, 5 | MIT (garythung/trashnet) |
| chanakya2734/Image-classification-using-CNN | dataset/training_set | 2,000, 2 (cats, dogs) | not stated |
| zhangtao7750/syn | hymenoptera_data | 397, 2 (ants, bees) | not stated; the set of the PyTorch tutorial on transfer learning |
"""

import argparse
import hashlib
import json
import os
import random
import re
import sys
from pathlib import Path

EXTENSIONS = {".jpg", ".jpeg", ".png"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=lambda path: Path(path).resolve())
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--test", type=float, default=0.25, help="the fraction of test photos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--block", type=int, default=1, help="the number of consecutive photos that stay together")
    parser.add_argument("--limit", type=int, help="the approximate number of photos to take (default: all)")
    args = parser.parse_args()
    print(json.dumps(split(args.source, args.output, args.test, args.seed, args.block, args.limit)))


def split(source, output, fraction=0.25, seed=1, block=1, limit=None):
    """Writes the folders train and test of a photo set, and returns the numbers of photos."""
    if not 0 < fraction < 1 or block < 1 or (limit is not None and limit < 1):
        sys.exit("The fraction of test photos must be between 0 and 1, and --block and --limit must be at least 1.")
    if output.exists() and any(output.iterdir()):
        sys.exit(f"{output} is not empty. Choose a new folder, so that the split has no photos of another one.")
    labels, copies, ambiguous = find_photos(source)
    if len(labels) < 2:
        sys.exit(f"{source} has {len(labels)} labels with photos; expected at least 2 folders of JPEG or PNG files.")
    generator = random.Random(seed)
    total = sum(map(len, labels.values()))
    counts = {"train": 0, "test": 0}
    for label, photos in sorted(labels.items()):
        blocks = [photos[start : start + block] for start in range(0, len(photos), block)]
        generator.shuffle(blocks)
        if limit:
            blocks = blocks[: max(round(limit * len(blocks) / total), 2)]
        tested = max(round(fraction * len(blocks)), 1)
        if tested == len(blocks):
            sys.exit(f"{source}: {label} has {len(photos)} photos, which are not enough for a training and a test folder.")
        for side, chosen in ("test", blocks[:tested]), ("train", blocks[tested:]):
            folder = output / side / label
            folder.mkdir(parents=True, exist_ok=True)
            for photo in (photo for photos in chosen for photo in photos):
                os.symlink(photo, folder / link_name(source, photo))
                counts[side] += 1
    return {"source": source.name, "seed": seed, "labels": len(labels), **counts, "copies": copies, "ambiguous": ambiguous}


def find_photos(source):
    """Returns the photos of each label in the order of their names, and the numbers of copies and of photos with several labels."""
    by_content = {}
    for file in sorted(source.rglob("*"), key=natural_order):
        if file.suffix.lower() in EXTENSIONS and file.is_file() and file.parent != source:
            by_content.setdefault(hashlib.sha256(file.read_bytes()).digest(), []).append(file)
    labels, copies, ambiguous = {}, 0, 0
    for files in by_content.values():
        if len({file.parent.name for file in files}) > 1:
            ambiguous += len(files)
            continue
        copies += len(files) - 1
        labels.setdefault(files[0].parent.name, []).append(files[0])
    return labels, copies, ambiguous


def natural_order(file):
    """Sorts frame 2 before frame 10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(file)) if part]


def link_name(source, photo):
    """Returns a name that is unique among the photos of a label: the path without the label."""
    parts = photo.relative_to(source).parts
    return "-".join(parts[:-2] + parts[-1:])


if __name__ == "__main__":
    main()
