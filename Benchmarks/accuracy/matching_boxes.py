"""Measures how well `imprint detect --artwork` finds all logos in scenes with several of them, without training.

    python3 Benchmarks/accuracy/matching_boxes.py OUTPUT [--imprint .build/release/imprint] [--seed 1] [--test 100] [--different] [-- OPTIONS OF imprint detect]

Draws the artwork of three logos and test scenes with 2 to 6 logos each, whose boxes are known exactly (OUTPUT/boxes.json, COCO). A scene
may show a logo several times. With --different, there are ten logos, and each is in a scene at most once. drawn_scenes.py draws the scenes,
independently of the compositing in Imprint. `imprint detect --artwork` searches all scenes for all logos. Prints the average precision of
pycocotools, and the recall and the precision at a confidence of 0.5 and an IoU of 0.5. OUTPUT/found.jpg shows the first 20 scenes with their
detections. Requires Pillow and pycocotools.
"""

import argparse
import contextlib
import io
import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

from drawn_boxes import coco_results, draw
from drawn_logos import contact_sheet
from drawn_scenes import LOGOS, TEN_LOGOS
from folds import parse_arguments, run_json

MINIMUM = 0.5  # the confidence and the IoU of recall and precision
SAMPLES = 1000  # of the bootstrap


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", type=int, default=100, help="the number of test scenes")
    parser.add_argument("--different", action="store_true", help="2 to 6 of ten logos in each scene, each at most once")
    args, options = parse_arguments(parser)
    logos = TEN_LOGOS if args.different else LOGOS
    annotations = draw(args, logos, args.different, fewest=2)
    search = [option for logo in logos for option in ("--artwork", f"{logo}={args.output / logo}.png")] + options
    scenes = [str(args.output / image["file_name"]) for image in annotations["images"]]
    start = time.monotonic()
    lines = run_json(args.imprint, "detect", *search, *scenes, "--threshold", "0.01", "--json")
    seconds = (time.monotonic() - start) / len(scenes)
    report(coco_results(lines, annotations), annotations, args)
    print(f"{seconds:.2f} s per scene")
    folder = args.output / "found"
    subprocess.run([args.imprint, "detect", *search, *scenes[:20], "--annotate", str(folder)], check=True, capture_output=True)
    contact_sheet(sorted(folder.iterdir())[:20], args.output / "found.jpg")


def report(results, annotations, args):
    """Prints the metrics, with 95 % bootstrap intervals over scenes for recall and precision."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(args.output / "boxes.json"))
        check = COCOeval(truth, truth.loadRes(results), "bbox")
        check.evaluate()
        check.accumulate()
        check.summarize()
    print(f"mAP@.5 {check.stats[1]:.4f}, mAP@.5:.95 {check.stats[0]:.4f}, AR@100 {check.stats[8]:.4f}")

    counts = [count(image["id"], results, annotations) for image in annotations["images"]]
    names = {category["id"]: category["name"] for category in annotations["categories"]}
    print("| logo | objects | recall | precision |")
    print("|---|---|---|---|")
    for number, name in [*names.items(), (None, "all")]:
        rows = [sum((row for category, row in scene.items() if number in (None, category)), Counter()) for scene in counts]
        recall, precision = (interval(rows, key, args.seed) for key in ("objects", "detections"))
        print(f"| {name} | {sum(row['objects'] for row in rows)} | {recall} | {precision} |")
    exact = sum(all(row["objects"] == row["detections"] for row in scene.values()) for scene in counts)
    print(f"scenes with the right number of each logo: {exact} of {len(counts)}")


def count(image, results, annotations):
    """Returns the objects, the confident detections and the matching pairs of a scene, for each category."""
    free = [entry for entry in annotations["annotations"] if entry["image_id"] == image]
    found = [entry for entry in results if entry["image_id"] == image and entry["score"] >= MINIMUM]
    counts = {category["id"]: Counter() for category in annotations["categories"]}
    for entry in free:
        counts[entry["category_id"]]["objects"] += 1
    for entry in sorted(found, key=lambda entry: -entry["score"]):
        counts[entry["category_id"]]["detections"] += 1
        same = [other for other in free if other["category_id"] == entry["category_id"]]
        best = max(same, key=lambda other: overlap(entry["bbox"], other["bbox"]), default=None)
        if best and overlap(entry["bbox"], best["bbox"]) >= MINIMUM:
            counts[entry["category_id"]]["matches"] += 1
            free.remove(best)
    return counts


def overlap(one, other):
    """Returns the intersection over union of two boxes (left, top, width, height)."""
    width, height = (min(one[i] + one[i + 2], other[i] + other[i + 2]) - max(one[i], other[i]) for i in (0, 1))
    common = max(width, 0) * max(height, 0)
    return common / (one[2] * one[3] + other[2] * other[3] - common)


def interval(rows, key, seed):
    """Returns the matches as a share of the objects or detections, with its bootstrap interval."""
    generator = random.Random(seed)
    shares = sorted(share(generator.choices(rows, k=len(rows)), key) for _ in range(SAMPLES))
    return f"{share(rows, key):.0%} ({shares[SAMPLES // 40]:.0%} to {shares[-SAMPLES // 40 - 1]:.0%})"


def share(rows, key):
    return sum(row["matches"] for row in rows) / max(sum(row[key] for row in rows), 1)


if __name__ == "__main__":
    main()
