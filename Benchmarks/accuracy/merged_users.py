"""Measures the effect of merging the personalizations of simulated users on the accuracy for other users.

    python3 Benchmarks/accuracy/merged_users.py BASE EVALUATION OUTPUT [--recipe two-circles] [--users 20] [--photos 20] [--test 200] \\
        [--merge "OPTIONS OF imprint merge"] [--imprint .build/release/imprint] [-- OPTIONS OF imprint personalize]

BASE is a model of the recipe, EVALUATION a folder of held-out images. The script draws images of users 1 to N, personalizes BASE for each of
them, merges the personalizations, and evaluates BASE and the merged model on the test images of N other users, N + 1 to 2 N, and on
EVALUATION. Prints a Markdown table, and the mean gain per image with a bootstrap interval over users. OUTPUT keeps images and models;
existing images are not drawn again, so it may be the output folder of drawn_users.py.
"""

import argparse
import statistics
from pathlib import Path

from drawn_users import draw
from folds import parse_arguments, run_json
from intervals import Gain, bootstrap, mean_gain


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--recipe", default="two-circles")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--merge", default="", help="options of imprint merge, as one argument")
    parser.add_argument("--imprint", default=".build/release/imprint")
    args, options = parse_arguments(parser)

    deltas = []
    for user in range(1, args.users + 1):
        folder = args.output / f"user-{user}"
        draw(args, user, folder / "photos", args.photos, 1)
        deltas.append(str(folder / "to-merge"))
        run_json(
            args.imprint, "personalize", str(args.base), str(folder / "photos"), "--output", deltas[-1], "--json",
            *options)
    merged = args.output / "merged.imprint"
    finished = run_json(
        args.imprint, "merge", str(args.base), *deltas, "--output", str(merged), "--json", *args.merge.split())[-1]

    def correctness(model, data):
        """Returns whether each image is classified correctly, by file."""
        *images, _ = run_json(args.imprint, "evaluate", str(model), str(data), "--images", "--json")
        return {image["file"]: image["correct"] for image in images}

    def compare(data, group):
        before, after = correctness(args.base, data), correctness(merged, data)
        # 1 if only the merged model classifies an image correctly, -1 if only the base model does, else 0.
        gains = [Gain(group, int(after[file]) - int(before[file])) for file in before]
        return accuracy(before), accuracy(after), gains

    rows, pairs = [], []
    for user in range(args.users + 1, 2 * args.users + 1):
        folder = args.output / f"user-{user}"
        draw(args, user, folder / "test", args.test, 2)
        before, after, gains = compare(folder / "test", user)
        rows.append((before, after, after - before))
        pairs += gains
    print(f"| {args.users} other users | base | merged | gain |")
    print("|---|---|---|---|")
    columns = list(zip(*rows))
    for name, measure in [("median", statistics.median), ("mean", statistics.mean), ("lowest", min), ("highest", max)]:
        print(f"| {name} {text([measure(column) for column in columns])}")
    before, after, evaluation_gains = compare(args.evaluation, 0)
    print(f"| EVALUATION {text((before, after, after - before))}")
    mean, low, high = bootstrap(mean_gain, [pairs])
    print(
        f"\nThe mean gain of other users is {100 * mean:+.2f} points (95 % interval over users {100 * low:+.2f} to "
        f"{100 * high:+.2f}); {sum(row[2] > 0 for row in rows)} users gain, {sum(row[2] < 0 for row in rows)} lose.")
    image_gains = [Gain(index, gain.value) for index, gain in enumerate(evaluation_gains)]
    mean, low, high = bootstrap(mean_gain, [image_gains])
    print(
        f"The mean gain on EVALUATION is {100 * mean:+.2f} points (95 % interval over images {100 * low:+.2f} to "
        f"{100 * high:+.2f}).")
    print(f"{finished['users']} personalizations from {finished['examples']} photos, {finished['clipped']} clipped", end="")
    print(f", ε = {finished['epsilon']:.3g} for δ = {finished['delta']:g}." if "epsilon" in finished else ".")


def accuracy(correctness):
    return sum(correctness.values()) / len(correctness)


def text(row):
    before, after, gain = row
    return f"| {before:.1%} | {after:.1%} | {100 * gain:+.1f} |"


if __name__ == "__main__":
    main()
