"""What tuning a model to one person is worth, on the pictures of invented people.

    python3 Benchmarks/accuracy/drawn_users.py BASE EVALUATION OUTPUT [--recipe two-circles] [--users 20] [--photos 20] [--test 200] \\
        [--imprint .build/release/imprint] [-- OPTIONS OF imprint personalize]

BASE is a model of the recipe, EVALUATION a folder of pictures that it has not seen. For each user draws as many photos to learn from
and, from another seed, pictures to test on (`imprint draw RECIPE --user N`), tunes BASE to the photos, and measures base and
personalization on the test pictures and on EVALUATION. Prints a table in Markdown. OUTPUT keeps pictures and personalizations;
what is there is not drawn again.
"""

import argparse
import statistics
from pathlib import Path

from folds import lines, parsed


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
    given, options = parsed(parser)

    def accuracy(data, *more):
        return lines(given.imprint, "evaluate", str(given.base), str(data), "--json", *more)[-1]["accuracy"]

    on_evaluation = accuracy(given.evaluation)
    print("| user | before | after | gain | on EVALUATION | change | bytes | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for user in range(1, given.users + 1):
        place = given.output / f"user-{user}"
        draw(given, user, place / "photos", given.photos, 1)
        draw(given, user, place / "test", given.test, 2)
        delta = place / "personalization"
        finished = lines(
            given.imprint, "personalize", str(given.base), str(place / "photos"), "--output", str(delta), "--json",
            *options)[-1]
        before, after = accuracy(place / "test"), accuracy(place / "test", "--personalization", str(delta))
        rest = accuracy(given.evaluation, "--personalization", str(delta))
        row = (before, after, after - before, rest, rest - on_evaluation, finished["bytes"], finished["seconds"])
        rows.append(row)
        print(f"| {user} {text(row)}", flush=True)
    middle = [statistics.median(column) for column in zip(*rows)]
    print(f"| median {text(middle)}")
    print(f"| lowest {text([min(column) for column in zip(*rows)])}")
    print(f"\nThe base has {on_evaluation:.1%} on EVALUATION.")


def draw(given, user, place, count, seed):
    if not place.exists():
        lines(
            given.imprint, "draw", given.recipe, "--user", str(user), "--output", str(place), "--count", str(count), "--seed",
            str(1000 * user + seed), "--json")


def text(row):
    before, after, gain, rest, change, size, seconds = row
    return (
        f"| {before:.1%} | {after:.1%} | {100 * gain:+.1f} | {rest:.1%} | {100 * change:+.1f} | {size:.0f} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
