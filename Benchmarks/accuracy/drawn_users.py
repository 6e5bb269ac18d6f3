"""Measures the effect of personalizing a model for one user, on drawn images of simulated users.

    python3 Benchmarks/accuracy/drawn_users.py BASE EVALUATION OUTPUT [--recipe two-circles] [--users 20] [--photos 20] [--test 200] \\
        [--imprint .build/release/imprint] [-- OPTIONS OF imprint personalize]

BASE is a model of the recipe, EVALUATION a folder of held-out images. For each user, the script draws --photos training images and, from
another seed, --test test images (`imprint draw RECIPE --user N`), personalizes BASE with the training images, and evaluates BASE and the
personalization on the test images and on EVALUATION. Prints a Markdown table. OUTPUT keeps images and personalizations; existing images
are not drawn again.
"""

import argparse
import statistics
from pathlib import Path

from folds import parse_arguments, run_json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--recipe", default="two-circles")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--imprint", default=".build/release/imprint")
    args, options = parse_arguments(parser)

    def accuracy(data, *more):
        return run_json(args.imprint, "evaluate", str(args.base), str(data), "--json", *more)[-1]["accuracy"]

    on_evaluation = accuracy(args.evaluation)
    print("| user | before | after | gain | on EVALUATION | change | bytes | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for user in range(1, args.users + 1):
        folder = args.output / f"user-{user}"
        draw(args, user, folder / "photos", args.photos, 1)
        draw(args, user, folder / "test", args.test, 2)
        delta = folder / "personalization"
        finished = run_json(
            args.imprint, "personalize", str(args.base), str(folder / "photos"), "--output", str(delta), "--json",
            *options)[-1]
        before, after = accuracy(folder / "test"), accuracy(folder / "test", "--personalization", str(delta))
        rest = accuracy(args.evaluation, "--personalization", str(delta))
        row = (before, after, after - before, rest, rest - on_evaluation, finished["bytes"], finished["seconds"])
        rows.append(row)
        print(f"| {user} {text(row)}", flush=True)
    medians = [statistics.median(column) for column in zip(*rows)]
    print(f"| median {text(medians)}")
    print(f"| lowest {text([min(column) for column in zip(*rows)])}")
    print(f"\nThe accuracy of BASE on EVALUATION is {on_evaluation:.1%}.")


def draw(args, user, folder, count, seed):
    if not folder.exists():
        run_json(
            args.imprint, "draw", args.recipe, "--user", str(user), "--output", str(folder), "--count", str(count), "--seed",
            str(1000 * user + seed), "--json")


def text(row):
    before, after, gain, rest, change, size, seconds = row
    return (
        f"| {before:.1%} | {after:.1%} | {100 * gain:+.1f} | {rest:.1%} | {100 * change:+.1f} | {size:.0f} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
