"""By how much the models of one way of training are right more often than those of another, on the same photos.

    python3 Benchmarks/accuracy/difference.py PHOTOS ONE OTHER [--groups GROUPS.json] [--imprint .build/release/imprint]

ONE and OTHER are folders that `cross_validation.py --keep` has filled, with the same seeds and folds. Photos are compared one by one, so that
those which are easy or hard for both do not blur the difference; its interval is by bootstrap over groups.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

from folds import grouped, listed
from intervals import bootstrap


class Gain(NamedTuple):
    """1 where only ONE is right about a photo, -1 where only OTHER is, else 0."""
    group: int
    value: int


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--groups", type=Path, help="which photos belong together; what imprint audit finds where left out")
    parser.add_argument("--imprint", default=".build/release/imprint")
    given = parser.parse_args()
    groups = listed(given.groups, given.photos) if given.groups else grouped(given.imprint, given.photos)
    group = {str(Path(file).relative_to(given.photos)): place for place, files in enumerate(groups) for file in files}
    one, other = answers(given.one), answers(given.other)
    if one.keys() != other.keys():
        sys.exit(f"{given.one} and {given.other} do not have the same seeds, folds and photos.")
    gains = [Gain(group[file], int(one[seed, file]) - int(other[seed, file])) for seed, file in one]
    mean, low, high = bootstrap(share, [gains])
    print(
        f"{given.one} is right {mean:+.1%} more often than {given.other} (95 % interval {low:+.1%} to {high:+.1%}), "
        f"of {len(gains)} answers")


def answers(folder):
    """Whether each photo was answered right, by seed and file."""
    found = {}
    for file in sorted(folder.glob("seed-*-fold-*.json")):
        seed = file.name.split("-")[1]
        found.update({(seed, image["file"]): image["correct"] for image in json.loads(file.read_text())["images"]})
    if not found:
        sys.exit(f"{folder} has no finished folds; fill it with cross_validation.py --keep {folder}.")
    return found


def share(gains, weights):
    """The mean gain, each counting as often as the weight of its group says."""
    total = sum(weights[gain.group] for gain in gains)
    return sum(weights[gain.group] * gain.value for gain in gains) / total if total else None


if __name__ == "__main__":
    main()
