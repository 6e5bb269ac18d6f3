"""By how much the models of one way of training are right more often than those of another, on the same photos.

    python3 Benchmarks/accuracy/difference.py PHOTOS ONE OTHER [--together] [--groups GROUPS.json] [--imprint .build/release/imprint]

ONE and OTHER are folders that `cross_validation.py --keep` has filled, with the same seeds and folds. Photos are compared one by one, so that
those which are easy or hard for both do not blur the difference; its interval is by bootstrap over groups. With --together both answer in the
place of ONE, by the mean of their logits (the geometric mean of their confidences).
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import NamedTuple

from folds import grouped, listed
from intervals import Prediction, auc, bootstrap


class Gain(NamedTuple):
    """1 where only ONE is right about a photo, -1 where only OTHER is, else 0."""
    group: int
    value: int


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--together", action="store_true", help="compare both together with OTHER")
    parser.add_argument("--groups", type=Path, help="which photos belong together; what imprint audit finds where left out")
    parser.add_argument("--imprint", default=".build/release/imprint")
    given = parser.parse_args()
    groups = listed(given.groups, given.photos) if given.groups else grouped(given.imprint, given.photos)
    group = {str(Path(file).relative_to(given.photos)): place for place, files in enumerate(groups) for file in files}
    one, other = answers(given.one), answers(given.other)
    if one.keys() != other.keys():
        sys.exit(f"{given.one} and {given.other} do not have the same seeds, folds and photos.")
    name = given.one
    if given.together:
        name, one = f"{given.one} and {given.other} together", {key: together(one[key], other[key]) for key in one}
    gains = [Gain(group[file], one[seed, file].is_right - other[seed, file].is_right) for seed, file in one]
    mean, low, high = bootstrap(share, [gains])
    print(
        f"{name} is right {mean:+.1%} more often than {given.other} (95 % interval {low:+.1%} to {high:+.1%}), "
        f"of {len(gains)} answers")
    for name, found in (name, one), (given.other, other):
        print(f"{name}: accuracy {sum(answer.is_right for answer in found.values()) / len(found):.1%}", end="")
        area = pooled_auc(found)
        print("" if area is None else f", AUC {area:.3f}, pooled over folds")


class Answer(NamedTuple):
    """What was said of a photo, the logarithm of the confidence in each label, and what it shows."""
    logits: dict
    label: str

    @property
    def is_right(self):
        return max(self.logits, key=self.logits.get) == self.label


def answers(folder):
    """What was said of each photo, by seed and file."""
    found = {}
    for file in sorted(folder.glob("seed-*-fold-*.json")):
        seed = file.name.split("-")[1]
        for image in json.loads(file.read_text())["images"]:
            said = {one["label"]: math.log(max(one["confidence"], 1e-30)) for one in image["observations"]}
            found[seed, image["file"]] = Answer(said, image["label"])
    if not found:
        sys.exit(f"{folder} has no finished folds; fill it with cross_validation.py --keep {folder}.")
    return found


def together(one, other):
    return Answer({label: (logit + other.logits[label]) / 2 for label, logit in one.logits.items()}, one.label)


def pooled_auc(found):
    """The AUC of all photos taken together; none where there are more than two labels."""
    labels = sorted(next(iter(found.values())).logits)
    if len(labels) != 2:
        return None
    scores = (answer.logits[labels[0]] - answer.logits[labels[1]] for answer in found.values())
    predictions = [
        Prediction(score, answer.label == labels[0], answer.is_right, 0) for score, answer in zip(scores, found.values())]
    return auc(sorted(predictions), {0: 1})


def share(gains, weights):
    """The mean gain, each counting as often as the weight of its group says."""
    total = sum(weights[gain.group] for gain in gains)
    return sum(weights[gain.group] * gain.value for gain in gains) / total if total else None


if __name__ == "__main__":
    main()
