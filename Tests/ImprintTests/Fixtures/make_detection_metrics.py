"""Writes detection_metrics.json: metrics of random detections, computed by COCOeval of pycocotools.

Run:  python3 -m venv .venv && .venv/bin/pip install pycocotools numpy
      .venv/bin/python Tests/ImprintTests/Fixtures/make_detection_metrics.py

The file was made with pycocotools 2.0.11 and numpy 2.4.6.

Boxes and scores are float32, as in `NormalizedRectangle` and `DetectedObject`. Scaled to pixels they are float64.
Each case has these keys; a metric that COCOeval reports as -1 is null:

    labels      the number of labels
    photos      [width, height, objects, detections]; an object is [label, x, y, width, height, crowd], a detection
                [label, score, x, y, width, height]
    perLabel    [AP@.5:.95, AP@.5, AP@.75, AR with 100 detections] of each label
    overall     [mAP@.5:.95, mAP@.5, mAP@.75, AR with 1, 10 and 100 detections]
    points      {"thresholds", "counts", "perEmptyPhoto"}: for a threshold per label [TP, FP, FN] of each label at IoU .5, and the
                mean number of detections in a photo without objects
    weights     how often each photo counts in a resample
    resampled   mAP@.5 of the photos, repeated by their weights; null for ties inside of a photo, where the order of the
                copies affects the result
"""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


# --- Reference metrics ---

def pixels(box, size):
    """Returns a normalised box in pixels; the sides are float32 before they are scaled."""
    return [float(np.float32(side)) * scale for side, scale in zip(box, size * 2)]


def annotations(photos, entries):
    """Returns COCO annotations with identifiers from 1, because COCOeval takes 0 for no match."""
    result = []
    for image, photo in enumerate(photos):
        for label, box, extra in entries(photo):
            bbox = pixels(box, photo[:2])
            result.append({
                "id": len(result) + 1, "image_id": image + 1, "category_id": label + 1, "bbox": bbox,
                "area": bbox[2] * bbox[3], "iscrowd": 0, **extra})
    return result


def dataset(photos, labels, entries):
    # Not COCO.loadRes, which fails without detections.
    coco = COCO()
    coco.dataset = {
        "images": [{"id": image + 1, "width": p[0], "height": p[1]} for image, p in enumerate(photos)],
        "categories": [{"id": label + 1, "name": f"label-{label}"} for label in range(labels)],
        "annotations": annotations(photos, entries)}
    coco.createIndex()
    return coco


def evaluate(photos, labels, max_detections=100):
    with contextlib.redirect_stdout(io.StringIO()):
        truth = dataset(photos, labels, lambda p: [(o[0], o[1:5], {"iscrowd": o[5]}) for o in p[2]])
        found = dataset(photos, labels, lambda p: [(d[0], d[2:], {"score": float(np.float32(d[1]))}) for d in p[3]])
        result = COCOeval(truth, found, "bbox")
        result.params.maxDets = [1, 10, max_detections]
        result.evaluate()
        result.accumulate()
        if max_detections == 100:
            result.summarize()
    return result


def number(value):
    return None if value < 0 else round(float(value), 12)


def mean(values):
    values = values[values > -1]
    return number(values.mean()) if values.size else None


def point(photos, labels, thresholds):
    # All detections count at an operating point, so more than 100 are matched.
    result = evaluate(photos, labels, 10**6)
    images, areas = len(photos), len(result.params.areaRng)
    counts = []
    for label, threshold in enumerate(thresholds):
        hits = errors = objects = 0
        for entry in result.evalImgs[label * areas * images:label * areas * images + images]:
            if entry is None:
                continue
            reached = np.array(entry["dtScores"]) >= threshold
            matched, ignored = entry["dtMatches"][0] > 0, entry["dtIgnore"][0].astype(bool)
            hits += int((reached & matched & ~ignored).sum())
            errors += int((reached & ~matched & ~ignored).sum())
            objects += int((entry["gtIgnore"] == 0).sum())
        counts.append([hits, errors, objects - hits])
    empty = [photo for photo in photos if not photo[2]]
    wrong = sum(float(np.float32(d[1])) >= thresholds[d[0]] for photo in empty for d in photo[3])
    return {"thresholds": thresholds, "counts": counts, "perEmptyPhoto": wrong / len(empty) if empty else None}


def reference(labels, photos, rng):
    result = evaluate(photos, labels)
    precision, recall = result.eval["precision"][:, :, :, 0, 2], result.eval["recall"][:, :, 0, 2]
    thresholds = [[0.5] * labels, [round(float(t), 2) for t in rng.uniform(0.05, 0.95, labels)]]
    weights = np.bincount(rng.integers(len(photos), size=len(photos)), minlength=len(photos)).tolist()
    ties = any(
        len({d[1] for d in photo[3] if d[0] == label}) < sum(d[0] == label for d in photo[3])
        for photo in photos for label in range(labels))
    repeated = [photo for photo, weight in zip(photos, weights) for _ in range(weight)]
    return {
        "perLabel": [
            [mean(precision[:, :, k]), mean(precision[0, :, k]), mean(precision[5, :, k]), mean(recall[:, k])]
            for k in range(labels)],
        "overall": [number(result.stats[index]) for index in (0, 1, 2, 6, 7, 8)],
        "points": [point(photos, labels, values) for values in thresholds],
        "weights": weights,
        "resampled": None if ties else number(evaluate(repeated, labels).stats[1])}


# --- Random detections ---

def random_box(rng, least=0.05, most=0.5):
    width, height = rng.uniform(least, most, 2)
    return [rng.uniform(0, 1 - width), rng.uniform(0, 1 - height), width, height]


def shifted(rng, box, scale):
    """Returns a box near another one: the smaller the scale, the higher the IoU."""
    x, y, width, height = box
    dx, dy, dw, dh = rng.normal(0, scale, 4)
    return [x + dx * width, y + dy * height, width * np.exp(dw), height * np.exp(dh)]


def scene(rng, labels, objects, detected=0.8, wrong=3, crowds=0.0, ties=False, silent=(), absent=()):
    """Returns a photo whose detections are near its objects, or wrong.

    `silent` are the labels without detections, `absent` those without objects.
    """
    size = [int(side) for side in rng.integers(60, 4000, 2)]
    truth, found = [], []

    def detect(label, box):
        if label not in silent:
            score = rng.choice([0.25, 0.5, 0.75]) if ties else round(float(rng.uniform(0.01, 1)), 4)
            found.append([int(label), float(score)] + [round(float(side), 4) for side in box])

    for _ in range(objects):
        label = int(rng.choice([label for label in range(labels) if label not in absent]))
        box, crowd = random_box(rng), int(rng.random() < crowds)
        truth.append([label] + [round(float(side), 4) for side in box] + [crowd])
        for _ in range(rng.integers(2, 6) if crowd else int(rng.random() < detected) + int(rng.random() < 0.3)):
            # Detections in a crowd are parts of it.
            near = shifted(rng, box, rng.choice([0.02, 0.06, 0.12]))
            if crowd:
                near[2:] = [side * rng.uniform(0.3, 0.9) for side in near[2:]]
            detect(label if rng.random() < 0.9 else rng.integers(labels), near)
    for _ in range(rng.integers(0, wrong + 1)):
        detect(rng.integers(labels), random_box(rng))
    order = rng.permutation(len(found))
    return [*size, truth, [found[index] for index in order]]


def grid_photo(rng):
    """Returns a photo with boxes on a grid of 16 cells, in which many IoUs equal a threshold or one another."""
    def box():
        width, height = rng.integers(1, 9, 2)
        return [rng.integers(0, 17 - width) / 16, rng.integers(0, 17 - height) / 16, width / 16, height / 16]

    truth = [[int(rng.integers(2)), *box(), int(rng.random() < 0.2)] for _ in range(10)]
    found = []
    for label, x, y, width, height, _ in truth:
        for kept in (1, 0.5, 0.75, 0.8, 0.55, 0.9):
            if rng.random() < 0.4:
                found.append([label, round(float(rng.integers(1, 9)) / 8, 3), x, y, width * kept, height])
    # Two objects in the same position: the detections of one have the same IoU with the other.
    truth.append(truth[0])
    return [160, 80, truth, found]


def cases():
    """Yields the name, the number of labels and the photos of each case."""
    rng = np.random.default_rng(1)

    def scenes(count, labels, objects, **options):
        return [scene(rng, labels, int(rng.integers(objects[0], objects[1] + 1)), **options) for _ in range(count)]

    yield "one photo, one label", 1, scenes(1, 1, (6, 6))
    yield "40 photos, 5 labels, photos and a label without objects, a label without detections", 5, (
        scenes(28, 5, (1, 6), silent=[3], absent=[4]) + scenes(12, 5, (0, 0), silent=[3], absent=[4]))
    yield "crowds", 2, scenes(15, 2, (1, 8), crowds=0.4)
    yield "a label with crowds only", 2, scenes(4, 2, (2, 4), absent=[1]) + scenes(5, 2, (1, 2), crowds=1, absent=[0])
    yield "ties in scores", 3, scenes(25, 3, (0, 7), ties=True)
    yield "ties in scores with crowds", 1, scenes(12, 1, (0, 9), ties=True, crowds=0.25)
    yield "ties in IoU and IoU equal to a threshold", 2, [grid_photo(rng) for _ in range(8)]
    many = scenes(3, 2, (60, 80), detected=0.9, wrong=40, crowds=0.02)
    yield "more than 100 detections in a photo", 2, many + [scene(rng, 1, 120, wrong=60)] + scenes(3, 2, (0, 2))
    yield "photos without objects", 2, scenes(6, 2, (0, 0), wrong=5)
    yield "photos without detections", 3, scenes(5, 3, (1, 3), silent=[0, 1, 2])
    yield "photos without objects and detections", 1, scenes(2, 1, (0, 0), silent=[0])
    yield "detections equal to the objects", 4, [
        [640, 480, photo[2], [[o[0], 0.9 - 0.01 * index, *o[1:5]] for index, o in enumerate(photo[2])]]
        for photo in scenes(6, 4, (1, 5))]


def main():
    lines = []
    for seed, (name, labels, photos) in enumerate(cases()):
        values = {"name": name, "labels": labels, **reference(labels, photos, np.random.default_rng(100 + seed))}
        head = json.dumps(values, separators=(",", ":"))[:-1]
        body = ",\n".join(json.dumps(photo, separators=(",", ":")) for photo in photos)
        lines.append(f'{head},"photos":[\n{body}]}}')
    path = Path(__file__).parent / "detection_metrics.json"
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


main()
