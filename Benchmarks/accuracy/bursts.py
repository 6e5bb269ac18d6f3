"""What tuning a model to a few photos of a place is worth, on photos of that place and on others.

    python3 Benchmarks/accuracy/bursts.py PHOTOS OUTPUT [--each] [--groups GROUPS.json] [--least 15] [--photos 10] [--seed 1] \\
        [--imprint .build/release/imprint] [--tuning "OPTIONS OF imprint personalize"] [-- OPTIONS OF imprint train]

Photos that belong together, as `imprint audit` finds or GROUPS.json lists, are a group. Groups of at least so many photos, with both labels,
are held out, and one base is trained on all other photos. For each group the base is tuned to 10 photos of it, drawn by chance, at least
two of each label; base and personalization are measured on the group's other photos, and on the photos of the other groups that
were held out. With --each there is a base for each group, trained on all photos but the group's; the others that it is measured on
are then the very photos that the base was trained on. Prints a table in Markdown. OUTPUT keeps bases, which are not trained again.
"""

import argparse
import random
import shlex
import shutil
from pathlib import Path

from folds import grouped, lines, link, listed, parsed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("output", type=Path)
    parser.add_argument("--each", action="store_true", help="train a base for each group, on all photos but the group's")
    parser.add_argument("--groups", type=Path, help="which photos belong together; what imprint audit finds where left out")
    parser.add_argument("--least", type=int, default=15)
    parser.add_argument("--photos", dest="count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--tuning", default="")
    given, options = parsed(parser)

    groups = listed(given.groups, given.photos) if given.groups else grouped(given.imprint, given.photos)
    held = [group for group in groups if len(group) >= given.least and len({label(file) for file in group}) > 1]
    held.sort(key=lambda group: (-len(group), group[0]))
    files = [file for group in groups for file in group]
    print("| group | photos | tested | before | after | others before | after | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    sums = [0] * 6
    for number, group in enumerate(held, 1):
        place = given.output / f"group-{number}"
        shutil.rmtree(place, ignore_errors=True)
        out = group if given.each else [file for other in held for file in other]
        base = trained(given, given.output / (f"base-{number}" if given.each else "base"), set(files) - set(out), options)
        chosen = choice(sorted(group), given.count, random.Random(given.seed))
        link(chosen, given.photos, place / "photos")
        link([file for file in group if file not in chosen], given.photos, place / "test")
        others = files if given.each else out
        link([file for file in others if file not in group], given.photos, place / "others")
        delta = place / "personalization"
        finished = lines(
            given.imprint, "personalize", str(base), str(place / "photos"), "--output", str(delta), "--json",
            *shlex.split(given.tuning))[-1]
        before, tested = right(given, base, place / "test")
        after, _ = right(given, base, place / "test", "--personalization", str(delta))
        others, count = right(given, base, place / "others")
        others_after, _ = right(given, base, place / "others", "--personalization", str(delta))
        sums = [a + b for a, b in zip(sums, (before, after, tested, others, others_after, count))]
        print(
            f"| {number} | {len(group)} | {tested} | {before / tested:.0%} | {after / tested:.0%} | {others / count:.1%} "
            f"| {others_after / count:.1%} | {finished['seconds']:.2f} |", flush=True)
    before, after, tested, others, others_after, count = sums
    print(
        f"| all | {sum(map(len, held))} | {tested} | {before / tested:.1%} | {after / tested:.1%} | {others / count:.1%} "
        f"| {others_after / count:.1%} | |")


def trained(given, name, files, options):
    """The base that is trained on these photos."""
    base = name.with_suffix(".imprint")
    if not base.exists():
        shutil.rmtree(name, ignore_errors=True)
        link(sorted(files), given.photos, name)
        lines(
            given.imprint, "train", str(name), "--output", str(base), "--seed", str(given.seed), "--json", *options)
    return base


def label(file):
    return Path(file).parts[-2]


def choice(group, count, chance):
    """Photos by chance, of each label at least two, and one at least left to test on."""
    chosen = []
    for name in sorted({label(file) for file in group}):
        own = [file for file in group if label(file) == name]
        chosen += chance.sample(own, min(2, len(own) - 1))
    rest = [file for file in group if file not in chosen]
    return chosen + chance.sample(rest, max(min(count - len(chosen), len(rest) - 1), 0))


def right(given, base, data, *more):
    """How many photos of a folder are judged rightly, and how many there are."""
    result = lines(given.imprint, "evaluate", str(base), str(data), "--json", *more)[-1]
    return sum(result["confusion"][place][place] for place in range(len(result["labels"]))), result["images"]


if __name__ == "__main__":
    main()
