"""Measures how well a detector that is trained from artwork finds and counts all logos in scenes with several of them.

    python3 Benchmarks/accuracy/drawn_boxes.py OUTPUT [--imprint .build/release/imprint] [--seed 1] [--test 300] [--ten] [--different] [--only-draw] \\
        [--model FILE] [-- OPTIONS OF imprint train-detector]

Draws the artwork of three logos and test scenes with 0 to 6 logos each, whose boxes are known exactly (OUTPUT/boxes.json, COCO). The scenes
are drawn by drawn_scenes.py, independently of the compositing in Imprint. Trains `imprint train-detector` on the artwork only, evaluates
the detector with `imprint evaluate --annotations`, compares the result with pycocotools, and counts the logos at the model's thresholds.
--ten draws ten logos instead of three. With --different, each scene has 2 to 6 different logos. --model evaluates an existing model instead.
OUTPUT/sheet.jpg shows scenes, and OUTPUT/found.jpg the first 20 scenes with the boxes that `imprint detect --annotate` draws. Requires Pillow and pycocotools.
"""

import argparse
import json
import random
import subprocess
from collections import Counter
from pathlib import Path

from drawn_logos import contact_sheet, save
from drawn_scenes import LOGOS, TEN_LOGOS, artwork, scene_of_several
from folds import parse_arguments, run_json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", type=int, default=300, help="the number of test scenes")
    parser.add_argument("--ten", action="store_true", help="ten logos instead of three")
    parser.add_argument("--different", action="store_true", help="2 to 6 different logos in each scene")
    parser.add_argument("--only-draw", action="store_true", help="draw, but do not train")
    parser.add_argument("--model", help="the model to evaluate; without it, one is trained")
    args, options = parse_arguments(parser)
    logos = TEN_LOGOS if args.ten else LOGOS
    annotations = draw(args, logos, args.different)
    if args.only_draw:
        return
    model = args.model or str(args.output / "logos.imprint")
    if not args.model:
        artwork_options = [option for logo in logos for option in ("--artwork", f"{logo}={args.output / logo}.png")]
        finished = run_json(
            args.imprint, "train-detector", *artwork_options, "--output", model, "--seed", str(args.seed), "--json", *options)[-1]
        print(f"trained in {finished['seconds']:.0f} s")
    boxes = str(args.output / "boxes.json")
    print(subprocess.run([args.imprint, "evaluate", model, "--annotations", boxes], check=True, capture_output=True, text=True).stdout)
    *images, evaluation = run_json(args.imprint, "evaluate", model, "--annotations", boxes, "--images", "--json")
    compare(images, evaluation, annotations, args.output)
    count(args, model, annotations)


def draw(args, logos=LOGOS, different=False, fewest=None):
    """Draws artwork and scenes, and returns the annotations; each scene depends only on the seed and its number.

    A scene has `fewest` to 6 logos; the default is 2 if they must be different, otherwise 0.
    """
    fewest = fewest if fewest is not None else 2 if different else 0
    args.output.mkdir(parents=True, exist_ok=True)
    logos = {name: logo() for name, logo in logos.items()}
    for name, layers in logos.items():
        artwork(layers).save(args.output / f"{name}.png")
    categories = {name: number for number, name in enumerate(logos, 1)}
    images, annotations = [], []
    for number in range(args.test):
        generator = random.Random(f"{args.seed} boxes {number}")
        image, objects = scene_of_several(generator, logos, fewest + number % (7 - fewest), different)
        name = f"{number:04}.jpg"
        save(generator, image, args.output / name)
        images.append({"id": number + 1, "file_name": name, "width": image.width, "height": image.height})
        for label, (left, top, right, bottom) in objects:
            box = [left, top, right - left, bottom - top]
            annotations.append({
                "id": len(annotations) + 1, "image_id": number + 1, "category_id": categories[label], "bbox": box,
                "area": box[2] * box[3], "iscrowd": 0})
    contents = {
        "images": images, "annotations": annotations,
        "categories": [{"id": number, "name": name} for name, number in categories.items()]}
    (args.output / "boxes.json").write_text(json.dumps(contents))
    contact_sheet([args.output / image["file_name"] for image in images[:40]], args.output / "sheet.jpg")
    return contents


def coco_results(images, annotations):
    """Converts the JSON lines of photos with detections to the results of COCO."""
    files = {image["file_name"]: image for image in annotations["images"]}
    categories = {category["name"]: category["id"] for category in annotations["categories"]}
    results = []
    for line in images:
        image = files[Path(line["file"]).name]
        for found in line["detections"]:
            box = found["box"]
            results.append({
                "image_id": image["id"], "category_id": categories[found["label"]], "score": found["confidence"],
                "bbox": [
                    box["x"] * image["width"], box["y"] * image["height"], box["width"] * image["width"],
                    box["height"] * image["height"]]})
    return results


def compare(images, evaluation, annotations, folder):
    """Computes the same metrics with pycocotools from the same detections."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth = COCO(str(folder / "boxes.json"))
    check = COCOeval(truth, truth.loadRes(coco_results(images, annotations)), "bbox")
    check.evaluate()
    check.accumulate()
    check.summarize()
    for name, value in (
        ("meanAveragePrecision", check.stats[0]), ("meanAveragePrecision50", check.stats[1]),
        ("meanAveragePrecision75", check.stats[2]), ("averageRecall100", check.stats[8])):
        print(f"{name}: imprint {evaluation[name]:.8f}, pycocotools {value:.8f}, difference {abs(evaluation[name] - value):.1e}")


def count(args, model, annotations):
    """Compares the logos that `imprint detect` finds with the drawn ones."""
    numbers = {category["name"]: category["id"] for category in annotations["categories"]}
    truth = {image["id"]: Counter() for image in annotations["images"]}
    for entry in annotations["annotations"]:
        truth[entry["image_id"]][entry["category_id"]] += 1
    files = [str(args.output / image["file_name"]) for image in annotations["images"]]
    lines = run_json(args.imprint, "detect", model, *files, "--json")
    found = {Path(line["file"]).name: Counter(numbers[entry["label"]] for entry in line["detections"]) for line in lines}
    pairs = [(found[image["file_name"]], truth[image["id"]]) for image in annotations["images"]]
    print(f"scenes with the right number of logos: {sum(a.total() == b.total() for a, b in pairs)} of {len(pairs)}")
    print(f"scenes with the right number of each logo: {sum(a == b for a, b in pairs)} of {len(pairs)}")
    missed, extra = sum((b - a).total() for a, b in pairs), sum((a - b).total() for a, b in pairs)
    print(f"logos: {sum(b.total() for _, b in pairs)}, missed {missed}, found in excess {extra}")
    folder = args.output / "found"
    subprocess.run([args.imprint, "detect", model, *files[:20], "--annotate", str(folder)], check=True, capture_output=True)
    contact_sheet(sorted(folder.iterdir())[:20], args.output / "found.jpg")


if __name__ == "__main__":
    main()
