"""Compares detectors that know three logos only from their artwork: Imprint, YOLO on composites of Imprint, and SIFT with RANSAC.

    python3 Benchmarks/accuracy/detection_peers.py OUTPUT [--imprint .build/release/imprint] [--seed 1] [--test 300] [--composites 6000] \\
        [--methods imprint,sift,yolo] [--image-size 320] [-- OPTIONS OF imprint train-detector]

Draws the artwork and the test scenes of drawn_boxes.py. `imprint train-detector` learns the logos from the artwork. YOLO (the smallest model
of Ultralytics, from random weights) trains on composites of the same artwork from `imprint draw --artwork`, with the same time for composites
and training together as Imprint needed, on all cores. Its images are smaller than by default (--image-size), so that it makes more steps in this
time, and it uses no mirror images; its other settings are the defaults. SIFT
matches the artwork with each scene, fits a homography by RANSAC, removes its inliers and repeats; the score is the number of inliers.
pycocotools computes the average precision of all methods. Prints a Markdown table. Requires Pillow, pycocotools, opencv-python and ultralytics.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

from drawn_boxes import draw
from drawn_scenes import LOGOS
from folds import parse_arguments, run_json

MINIMUM_INLIERS = 6  # a homography needs 4; two more make it unlikely by chance


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=lambda path: Path(path).resolve())
    parser.add_argument("--imprint", default=".build/release/imprint", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", type=int, default=300, help="the number of test scenes")
    parser.add_argument("--composites", type=int, default=6000, help="the number of training images of YOLO")
    parser.add_argument("--methods", default="imprint,sift,yolo")
    parser.add_argument("--image-size", type=int, default=320, help="the image size of YOLO, in pixels")
    args, options = parse_arguments(parser)
    args.options = options
    annotations = draw(args)
    rows, budget = [], None
    for method in args.methods.split(","):
        seconds, milliseconds, results = METHODS[method](args, annotations, budget)
        if method == "imprint":
            budget = seconds
        rows.append((NAMES[method], seconds, milliseconds, evaluate(args.output / "boxes.json", results)))
    print(f"\n{args.test} scenes, {len(annotations['annotations'])} logos, {os.cpu_count()} cores\n")
    print("| method | training | a scene | AP@.5 | AP@.75 | AP@.5:.95 |\n|---|---|---|---|---|---|")
    for name, seconds, milliseconds, stats in rows:
        training = f"{seconds:.0f} s" if seconds else "–"
        print(f"| {name} | {training} | {milliseconds:.0f} ms | {stats[1]:.3f} | {stats[2]:.3f} | {stats[0]:.3f} |")


def files(args, annotations):
    return {str(args.output / image["file_name"]): image for image in annotations["images"]}


def category(annotations):
    return {entry["name"]: entry["id"] for entry in annotations["categories"]}


def artwork_options(args):
    return [option for logo in LOGOS for option in ("--artwork", f"{logo}={args.output / logo}.png")]


# Imprint -----------------------------------------------------------------------------------------------------------------


def imprint(args, annotations, budget):
    model = args.output / "logos.imprint"
    start = time.monotonic()
    run_json(args.imprint, "train-detector", *artwork_options(args), "--output", str(model), "--json", *args.options)
    seconds = time.monotonic() - start
    scenes = files(args, annotations)
    start = time.monotonic()
    lines = run_json(args.imprint, "detect", str(model), *scenes, "--threshold", "0", "--json")
    milliseconds = (time.monotonic() - start) / len(scenes) * 1000
    numbers, results = category(annotations), []
    for line in lines:
        image = scenes[line["file"]]
        for found in line["detections"]:
            box = found["box"]
            corner = [box["x"] * image["width"], box["y"] * image["height"]]
            size = [box["width"] * image["width"], box["height"] * image["height"]]
            results.append(
                {"image_id": image["id"], "category_id": numbers[found["label"]], "bbox": corner + size, "score": found["confidence"]})
    return seconds, milliseconds, results


# SIFT and RANSAC ---------------------------------------------------------------------------------------------------------


def sift(args, annotations, budget):
    import cv2

    extractor, matcher = cv2.SIFT_create(), cv2.BFMatcher()
    templates = {}
    for logo in LOGOS:
        picture = cv2.imread(str(args.output / f"{logo}.png"), cv2.IMREAD_UNCHANGED)
        if picture.shape[2] == 4:
            alpha = picture[:, :, 3:] / 255.0
            picture = (picture[:, :, :3] * alpha + 255 * (1 - alpha)).astype("uint8")
        gray = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
        templates[logo] = (*extractor.detectAndCompute(gray, None), gray.shape)
    numbers, results = category(annotations), []
    start = time.monotonic()
    for file, image in files(args, annotations).items():
        points, descriptors = extractor.detectAndCompute(cv2.imread(file, cv2.IMREAD_GRAYSCALE), None)
        for logo, template in templates.items():
            for box, inliers in homographies(cv2, matcher, template, points, descriptors, image):
                results.append({"image_id": image["id"], "category_id": numbers[logo], "bbox": box, "score": inliers})
    return 0, (time.monotonic() - start) / args.test * 1000, results


def homographies(cv2, matcher, template, points, descriptors, image):
    """Yields the box and the number of inliers of each match of a template."""
    import numpy

    template_points, template_descriptors, (height, width) = template
    if descriptors is None or template_descriptors is None or len(descriptors) < 2:
        return
    pairs = [
        best for best, second in (pair for pair in matcher.knnMatch(template_descriptors, descriptors, k=2) if len(pair) == 2)
        if best.distance < 0.8 * second.distance]
    corners = numpy.float32([[0, 0], [width, 0], [width, height], [0, height]]).reshape(-1, 1, 2)
    while len(pairs) >= MINIMUM_INLIERS:
        source = numpy.float32([template_points[match.queryIdx].pt for match in pairs]).reshape(-1, 1, 2)
        target = numpy.float32([points[match.trainIdx].pt for match in pairs]).reshape(-1, 1, 2)
        matrix, mask = cv2.findHomography(source, target, cv2.RANSAC, 5.0)
        if matrix is None or mask.sum() < MINIMUM_INLIERS:
            return
        outline = cv2.perspectiveTransform(corners, matrix).reshape(-1, 2)
        low = outline.min(0).clip(0, [image["width"], image["height"]])
        high = outline.max(0).clip(0, [image["width"], image["height"]])
        if (high - low).min() > 4:
            yield [float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1])], int(mask.sum())
        pairs = [pair for pair, inside in zip(pairs, mask.ravel()) if not inside]


# YOLO --------------------------------------------------------------------------------------------------------------------


def yolo(args, annotations, budget):
    import torch
    from ultralytics import YOLO

    if budget is None:
        sys.exit("yolo needs the training time of imprint; name imprint before yolo in --methods")
    start = time.monotonic()
    data = args.output / "composites"
    if not data.exists():
        subprocess.run(
            [args.imprint, "draw", *artwork_options(args), "--output", str(data / "images"), "--count", str(args.composites),
             "--seed", str(args.seed)], check=True)
        write_labels(data)
    rest = budget - (time.monotonic() - start)
    with redirect_stdout(sys.stderr):
        model = YOLO("yolo11n.yaml")
        # Ultralytics leaves one core unused.
        for event in ("on_train_start", "on_predict_start"):
            model.add_callback(event, lambda _: torch.set_num_threads(os.cpu_count()))
        model.train(
            data=str(data / "data.yaml"), time=rest / 3600, imgsz=args.image_size, fliplr=0.0, device="cpu", workers=2, seed=args.seed,
            project=str(args.output), name="yolo", exist_ok=True, plots=False, val=False, pretrained=False)
        seconds = time.monotonic() - start
        start = time.monotonic()
        scenes, results = files(args, annotations), []
        for file, image in scenes.items():
            found = model.predict(file, conf=0.001, imgsz=args.image_size, device="cpu", verbose=False)[0].boxes
            for (left, top, right, bottom), score, label in zip(found.xyxy.tolist(), found.conf.tolist(), found.cls.tolist()):
                name = model.names[int(label)]
                results.append({
                    "image_id": image["id"], "category_id": category(annotations)[name],
                    "bbox": [left, top, right - left, bottom - top], "score": score})
    return seconds, (time.monotonic() - start) / len(scenes) * 1000, results


def write_labels(data):
    """Writes the boxes of the composites in the format of YOLO."""
    boxes = json.loads((data / "images" / "boxes.json").read_text())
    names = {entry["id"]: index for index, entry in enumerate(boxes["categories"])}
    lines = {}
    for entry in boxes["annotations"]:
        image = boxes["images"][entry["image_id"] - 1]
        x, y, width, height = entry["bbox"]
        values = [(x + width / 2) / image["width"], (y + height / 2) / image["height"], width / image["width"], height / image["height"]]
        lines.setdefault(image["file_name"], []).append(f"{names[entry['category_id']]} " + " ".join(f"{value:.6f}" for value in values))
    (data / "labels").mkdir()
    for image in boxes["images"]:
        text = "\n".join(lines.get(image["file_name"], []))
        (data / "labels" / image["file_name"]).with_suffix(".txt").write_text(text)
    listed = "\n".join(f"  {index}: {entry['name']}" for index, entry in enumerate(boxes["categories"]))
    (data / "data.yaml").write_text(f"path: {data}\ntrain: images\nval: images\nnames:\n{listed}\n")


# Evaluation --------------------------------------------------------------------------------------------------------------


def evaluate(truth, results):
    """Returns the statistics of pycocotools."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    with redirect_stdout(sys.stderr):
        truth = COCO(str(truth))
        check = COCOeval(truth, truth.loadRes(results), "bbox")
        check.evaluate()
        check.accumulate()
        check.summarize()
    return check.stats


METHODS = {"imprint": imprint, "sift": sift, "yolo": yolo}
NAMES = {"imprint": "Imprint", "sift": "SIFT and RANSAC", "yolo": "YOLO11n from random weights"}

if __name__ == "__main__":
    main()
