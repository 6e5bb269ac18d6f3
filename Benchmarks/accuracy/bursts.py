"""Measures the effect of personalizing a model with a few photos of a burst, on other photos of that burst and on other bursts.

    python3 Benchmarks/accuracy/bursts.py PHOTOS OUTPUT [--each] [--groups GROUPS.json] [--least 15] [--photos 10] [--seed 1] \\
        [--imprint .build/release/imprint] [--tuning "OPTIONS OF imprint personalize"] [-- OPTIONS OF imprint train]

A group is a set of near-duplicates or a burst, as found by `imprint audit` or listed in GROUPS.json. Groups with at least --least photos
and both labels are held out, and a base model is trained on all other photos. For each held-out group, the base model is personalized
with --photos random photos of the group, at least two per label. The base model and the personalization are evaluated on the other photos
of the group, and on the other held-out groups. With --each, each group has a separate base model, trained on all photos outside the group;
the "other" photos are then training photos. Prints a Markdown table. OUTPUT keeps the base models, which are not trained again.
"""

import argparse
import random
import shlex
import shutil
from pathlib import Path

from folds import audit_groups, link, parse_arguments, read_groups, run_json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("output", type=Path)
    parser.add_argument("--each", action="store_true", help="train a base model for each group, on all photos outside the group")
    parser.add_argument("--groups", type=Path, help="a JSON file with groups of photos (default: those that imprint audit finds)")
    parser.add_argument("--least", type=int, default=15, help="the minimum number of photos of a group")
    parser.add_argument("--photos", dest="count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--tuning", default="")
    args, options = parse_arguments(parser)

    groups = read_groups(args.groups, args.photos) if args.groups else audit_groups(args.imprint, args.photos)
    held_out = [group for group in groups if len(group) >= args.least and len({label(file) for file in group}) > 1]
    held_out.sort(key=lambda group: (-len(group), group[0]))
    files = [file for group in groups for file in group]
    print("| group | photos | tested | before | after | others before | after | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    sums = [0] * 6
    for number, group in enumerate(held_out, 1):
        folder = args.output / f"group-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        excluded = group if args.each else [file for other in held_out for file in other]
        base = train_base(args, args.output / (f"base-{number}" if args.each else "base"), set(files) - set(excluded), options)
        chosen = choose(sorted(group), args.count, random.Random(args.seed))
        link(chosen, args.photos, folder / "photos")
        link([file for file in group if file not in chosen], args.photos, folder / "test")
        others = files if args.each else excluded
        link([file for file in others if file not in group], args.photos, folder / "others")
        delta = folder / "personalization"
        finished = run_json(
            args.imprint, "personalize", str(base), str(folder / "photos"), "--output", str(delta), "--json",
            *shlex.split(args.tuning))[-1]
        before, tested = count_correct(args, base, folder / "test")
        after, _ = count_correct(args, base, folder / "test", "--personalization", str(delta))
        others, count = count_correct(args, base, folder / "others")
        others_after, _ = count_correct(args, base, folder / "others", "--personalization", str(delta))
        sums = [a + b for a, b in zip(sums, (before, after, tested, others, others_after, count))]
        print(
            f"| {number} | {len(group)} | {tested} | {before / tested:.0%} | {after / tested:.0%} | {others / count:.1%} "
            f"| {others_after / count:.1%} | {finished['seconds']:.2f} |", flush=True)
    before, after, tested, others, others_after, count = sums
    print(
        f"| all | {sum(map(len, held_out))} | {tested} | {before / tested:.1%} | {after / tested:.1%} | {others / count:.1%} "
        f"| {others_after / count:.1%} | |")


def train_base(args, name, files, options):
    """Trains the base model on photos, unless it exists, and returns its path."""
    base = name.with_suffix(".imprint")
    if not base.exists():
        shutil.rmtree(name, ignore_errors=True)
        link(sorted(files), args.photos, name)
        run_json(
            args.imprint, "train", str(name), "--output", str(base), "--seed", str(args.seed), "--json", *options)
    return base


def label(file):
    return Path(file).parts[-2]


def choose(group, count, generator):
    """Chooses random photos, at least two per label, and leaves at least one photo for testing."""
    chosen = []
    for name in sorted({label(file) for file in group}):
        labelled = [file for file in group if label(file) == name]
        chosen += generator.sample(labelled, min(2, len(labelled) - 1))
    rest = [file for file in group if file not in chosen]
    return chosen + generator.sample(rest, max(min(count - len(chosen), len(rest) - 1), 0))


def count_correct(args, base, data, *more):
    """Returns the number of correctly classified photos of a folder, and the number of all photos."""
    result = run_json(args.imprint, "evaluate", str(base), str(data), "--json", *more)[-1]
    return sum(result["confusion"][index][index] for index in range(len(result["labels"]))), result["images"]


if __name__ == "__main__":
    main()
