"""Compares a logo that is added to a detector by personalization with one that is trained with the others.

    python3 Benchmarks/accuracy/new_logo.py OUTPUT [--imprint .build/release/imprint] [--seed 1] [--test 210] [-- OPTIONS OF imprint train-detector]

Draws the artwork of three logos and test scenes with up to 6 of them, as drawn_boxes.py does. Trains a detector of the first two logos, adds the
third with `imprint personalize --artwork`, and trains a detector of all three. Prints the average precision of each logo (IoU .5) and the
seconds. Requires Pillow.
"""

import argparse
import json
from pathlib import Path

from drawn_boxes import draw
from folds import parse_arguments, run_json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--test", type=int, default=210, help="the number of test scenes")
    args, options = parse_arguments(parser)
    annotations = draw(args)
    names = {category["id"]: category["name"] for category in annotations["categories"]}
    *old, new = names.values()
    known = [entry for entry in annotations["annotations"] if names[entry["category_id"]] != new]
    categories = [category for category in annotations["categories"] if category["name"] != new]
    old_boxes = args.output / "boxes-old.json"
    old_boxes.write_text(json.dumps(annotations | {"annotations": known, "categories": categories}))
    boxes = args.output / "boxes.json"

    def artwork(logos):
        return [option for logo in logos for option in ("--artwork", f"{logo}={args.output / logo}.png")]

    def train(logos, model):
        command = ("train-detector", *artwork(logos), "--output", str(model), "--seed", str(args.seed), "--json", *options)
        return run_json(args.imprint, *command)[-1]["seconds"]

    def show(name, seconds, model, truth, *more):
        result = run_json(args.imprint, "evaluate", str(model), "--annotations", str(truth), *more, "--json")[-1]
        precisions = {label["label"]: label["averagePrecision50"] for label in result["perLabel"]}
        cells = [f"{precisions[label]:.4f}" if label in precisions else "–" for label in (*old, new)]
        print(f"| {name} | {' | '.join(cells)} | {seconds:.1f} |")

    base, whole, mine = (args.output / name for name in ("base.imprint", "all.imprint", "mine"))
    print(f"| detector | {' | '.join((*old, new))} | seconds |\n|---|{'---|' * (len(old) + 2)}")
    show(f"{' and '.join(old)}", train(old, base), base, old_boxes)
    line = run_json(args.imprint, "personalize", str(base), *artwork([new]), "--output", str(mine), "--json")[-1]
    show(f"the same, personalized with {new}", line["seconds"], base, boxes, "--personalization", str(mine))
    show("all three, trained", train([*old, new], whole), whole, boxes)


if __name__ == "__main__":
    main()
