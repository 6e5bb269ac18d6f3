"""How well a label that is added from ten photos is known, and what it does to the others.

    python3 Benchmarks/accuracy/third_label.py BASE EVALUATION OUTPUT [--marks 40] [--photos 10] [--test 200] \\
        [--imprint .build/release/imprint] [-- OPTIONS OF imprint personalize]

BASE is a model of two-circles, EVALUATION a folder of its pictures that it has not seen. Draws marks that chance puts together, in the
style of two-circles, adds each to BASE from so many photos, and measures: the recall of the new label at the threshold from which on 95 %
of what is called so is right, on its test pictures together with those of EVALUATION; how many of its test pictures are called so without a
threshold; and the accuracy on EVALUATION before and after. Prints a table in Markdown.
"""

import argparse
import json
import shutil
import statistics
from pathlib import Path

from folds import lines, parsed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--marks", type=int, default=40)
    parser.add_argument("--photos", type=int, default=10)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--imprint", default=".build/release/imprint")
    given, options = parsed(parser)

    names = draw(given)
    before = evaluated(given, given.evaluation)
    print("| mark | recall at 95 % precision | recall | on EVALUATION before | after | change |")
    print("|---|---|---|---|---|---|")
    rows = []
    for name in names:
        place = given.output / name
        delta = place / "personalization"
        lines(
            given.imprint, "personalize", str(given.base), str(place / "photos"), "--output", str(delta), "--json",
            *options)
        old = evaluated(given, given.evaluation, delta)
        new = evaluated(given, place / "test", delta)
        row = (
            recall(name, new, old, 0.95), accuracy(new), accuracy(before), accuracy(old), accuracy(old) - accuracy(before))
        rows.append(row)
        print(f"| {name} {text(row)}", flush=True)
    print(f"| median {text([statistics.median(column) for column in zip(*rows)])}")
    print(f"| lowest {text([min(column) for column in zip(*rows)])}")


def draw(given):
    """Pictures to learn from and to test on, of each mark; returns the marks' names."""
    recipe = json.loads(Path("datasets/two-circles.json").read_text())
    del recipe["compositing"]
    names = [f"Mark{number}" for number in range(1001, 1001 + max(given.marks, 2))]
    recipe["name"] = "third"
    recipe["labels"] = [
        {"name": name, "marks": [{"kind": "invented", "weight": 1, "number": int(name[4:])}]} for name in names]
    given.output.mkdir(parents=True, exist_ok=True)
    file = given.output / "third.json"
    file.write_text(json.dumps(recipe))
    for part, count, seed in (("photos", given.photos, 1), ("test", given.test, 2)):
        drawn = given.output / part
        if drawn.exists():
            continue
        lines(
            given.imprint, "draw", str(file), "--output", str(drawn), "--count", str(count * len(names)), "--seed", str(seed),
            "--json")
        for name in names:
            shutil.copytree(drawn / name, given.output / name / part / name)
    return names


def evaluated(given, data, delta=None):
    more = ["--personalization", str(delta)] if delta else []
    return [
        line for line in lines(given.imprint, "evaluate", str(given.base), str(data), "--images", "--json", *more)
        if line.get("event") == "image"]


def accuracy(images):
    return sum(image["correct"] for image in images) / len(images)


def recall(name, own, others, precision):
    """The greatest recall of a label at a threshold from which on it is so precise."""

    def confidence(image):
        return next(seen["confidence"] for seen in image["observations"] if seen["label"] == name)

    ranked = sorted([(confidence(image), True) for image in own] + [(confidence(image), False) for image in others], reverse=True)
    best = hits = 0
    for place, (_, is_own) in enumerate(ranked, 1):
        hits += is_own
        if hits / place >= precision:
            best = max(best, hits / len(own))
    return best


def text(row):
    return f"| {row[0]:.1%} | {row[1]:.1%} | {row[2]:.1%} | {row[3]:.1%} | {100 * row[4]:+.1f} |"


if __name__ == "__main__":
    main()
