"""Compares the accuracy of two ways of training on the same photos.

    python3 Benchmarks/accuracy/difference.py PHOTOS ONE OTHER [--together] [--groups GROUPS.json] [--imprint .build/release/imprint]

ONE and OTHER are folders of `imprint train --folds K --keep` with the same seeds and folds. The comparison is paired by photo, and its interval
is a bootstrap over groups. With --together, the ensemble of both replaces ONE: it averages their logits (the geometric mean of confidences).
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import NamedTuple

from folds import audit_groups, read_groups
from intervals import Gain, Prediction, auc, bootstrap, mean_gain


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--together", action="store_true", help="compare the ensemble of both with OTHER")
    parser.add_argument("--groups", type=Path, help="a JSON file with groups of photos (default: those that imprint audit finds)")
    parser.add_argument("--imprint", default=".build/release/imprint")
    args = parser.parse_args()
    groups = read_groups(args.groups, args.photos) if args.groups else audit_groups(args.imprint, args.photos)
    group = {str(Path(file).relative_to(args.photos)): index for index, files in enumerate(groups) for file in files}
    one, other = predictions(args.one), predictions(args.other)
    if one.keys() != other.keys():
        sys.exit(f"{args.one} and {args.other} do not have the same seeds, folds and photos.")
    name = args.one
    if args.together:
        name, one = f"{args.one} and {args.other} together", {key: ensemble(one[key], other[key]) for key in one}
    # 1 if only ONE classifies a photo correctly, -1 if only OTHER does, else 0.
    gains = [Gain(group[file], one[seed, file].is_correct - other[seed, file].is_correct) for seed, file in one]
    mean, low, high = bootstrap(mean_gain, [gains])
    print(
        f"{name}: accuracy {mean:+.1%} relative to {args.other} (95 % interval {low:+.1%} to {high:+.1%}), "
        f"{len(gains)} predictions")
    for name, found in (name, one), (args.other, other):
        print(f"{name}: accuracy {sum(prediction.is_correct for prediction in found.values()) / len(found):.1%}", end="")
        area = pooled_auc(found)
        print("" if area is None else f", AUC {area:.3f}, pooled over folds")


class LogitPrediction(NamedTuple):
    """The logarithm of the confidence in each label for a photo, and its true label."""
    logits: dict
    label: str

    @property
    def is_correct(self):
        return max(self.logits, key=self.logits.get) == self.label


def predictions(folder):
    """Reads the prediction for each photo, by seed and file."""
    found = {}
    for file in sorted(folder.glob("seed-*-fold-*.json")):
        seed = file.name.split("-")[1]
        for image in json.loads(file.read_text())["images"]:
            logits = {one["label"]: math.log(max(one["confidence"], 1e-30)) for one in image["observations"]}
            found[seed, image["file"]] = LogitPrediction(logits, image["label"])
    if not found:
        sys.exit(f"{folder} has no finished folds; run imprint train --folds 5 --keep {folder} first.")
    return found


def ensemble(one, other):
    return LogitPrediction({label: (logit + other.logits[label]) / 2 for label, logit in one.logits.items()}, one.label)


def pooled_auc(found):
    """Returns the AUC of all photos; None if there are more than two labels."""
    labels = sorted(next(iter(found.values())).logits)
    if len(labels) != 2:
        return None
    scores = (one.logits[labels[0]] - one.logits[labels[1]] for one in found.values())
    binary = [Prediction(score, one.label == labels[0], one.is_correct, 0) for score, one in zip(scores, found.values())]
    return auc(sorted(binary), {0: 1})


if __name__ == "__main__":
    main()
