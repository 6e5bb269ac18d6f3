"""Measures the accuracy of a label that is added by personalization, and its effect on the other labels.

    python3 Benchmarks/accuracy/third_label.py BASE EVALUATION OUTPUT [--logos 40] [--photos 10] [--test 200] \\
        [--imprint .build/release/imprint] [-- OPTIONS OF imprint personalize]

BASE is a model of two-circles, EVALUATION a folder of held-out images of two-circles. The script draws random logos in the style of
two-circles, adds each of them to BASE with --photos images, and measures: the recall of the new label at 95 % precision, on its test images
and EVALUATION; the recall without a threshold; and the accuracy on EVALUATION before and after. Prints a Markdown table.
"""

import argparse
import json
import shutil
import statistics
from pathlib import Path

from folds import parse_arguments, run_json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--logos", "--marks", type=int, default=40)
    parser.add_argument("--photos", type=int, default=10)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--imprint", default=".build/release/imprint")
    args, options = parse_arguments(parser)

    names = draw(args)
    before = evaluate(args, args.evaluation)
    print("| logo | recall at 95 % precision | recall | on EVALUATION before | after | change |")
    print("|---|---|---|---|---|---|")
    rows = []
    for name in names:
        folder = args.output / name
        delta = folder / "personalization"
        run_json(
            args.imprint, "personalize", str(args.base), str(folder / "photos"), "--output", str(delta), "--json",
            *options)
        old = evaluate(args, args.evaluation, delta)
        new = evaluate(args, folder / "test", delta)
        row = (
            recall(name, new, old, 0.95), accuracy(new), accuracy(before), accuracy(old), accuracy(old) - accuracy(before))
        rows.append(row)
        print(f"| {name} {text(row)}", flush=True)
    print(f"| median {text([statistics.median(column) for column in zip(*rows)])}")
    print(f"| lowest {text([min(column) for column in zip(*rows)])}")


def draw(args):
    """Draws training and test images of each logo, and returns the names of the logos."""
    recipe = json.loads(Path("datasets/two-circles.json").read_text())
    del recipe["compositing"]
    names = [f"Mark{number}" for number in range(1001, 1001 + max(args.logos, 2))]
    recipe["name"] = "third"
    recipe["labels"] = [
        {"name": name, "marks": [{"kind": "invented", "weight": 1, "number": int(name[4:])}]} for name in names]
    args.output.mkdir(parents=True, exist_ok=True)
    file = args.output / "third.json"
    file.write_text(json.dumps(recipe))
    for part, count, seed in (("photos", args.photos, 1), ("test", args.test, 2)):
        folder = args.output / part
        if folder.exists():
            continue
        run_json(
            args.imprint, "draw", str(file), "--output", str(folder), "--count", str(count * len(names)), "--seed", str(seed),
            "--json")
        for name in names:
            shutil.copytree(folder / name, args.output / name / part / name)
    return names


def evaluate(args, data, delta=None):
    more = ["--personalization", str(delta)] if delta else []
    return [
        line for line in run_json(args.imprint, "evaluate", str(args.base), str(data), "--images", "--json", *more)
        if line.get("event") == "image"]


def accuracy(images):
    return sum(image["correct"] for image in images) / len(images)


def recall(name, positives, negatives, precision):
    """Returns the maximum recall of a label at a threshold with at least a precision."""

    def confidence(image):
        return next(one["confidence"] for one in image["observations"] if one["label"] == name)

    ranked = sorted(
        [(confidence(image), True) for image in positives] + [(confidence(image), False) for image in negatives], reverse=True)
    best = hits = 0
    for count, (_, is_positive) in enumerate(ranked, 1):
        hits += is_positive
        if hits / count >= precision:
            best = max(best, hits / len(positives))
    return best


def text(row):
    return f"| {row[0]:.1%} | {row[1]:.1%} | {row[2]:.1%} | {row[3]:.1%} | {100 * row[4]:+.1f} |"


if __name__ == "__main__":
    main()
