"""What averaging the personalizations of some invented people is worth to other people.

    python3 Benchmarks/accuracy/merged_users.py BASE EVALUATION OUTPUT [--recipe two-circles] [--users 20] [--photos 20] [--test 200] \\
        [--merge "OPTIONS OF imprint merge"] [--imprint .build/release/imprint] [-- OPTIONS OF imprint personalize]

BASE is a model of the recipe, EVALUATION a folder of pictures that it has not seen. Draws photos of users 1 to N, tunes BASE to those of
each, merges all these personalizations, and measures BASE and the merged model on the test pictures of N other users, N + 1 to 2 N, and
on EVALUATION. Prints a table in Markdown, and the gain photo by photo with an interval by bootstrap over users. OUTPUT keeps pictures and
models; pictures that are there are not drawn again, so it may be that of drawn_users.py.
"""

import argparse
import statistics
from collections import namedtuple
from pathlib import Path

from drawn_users import draw
from folds import lines, parsed
from intervals import bootstrap

# 1 where only the merged model is right about a photo, -1 where only the base is, else 0.
Gain = namedtuple("Gain", "group value")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--recipe", default="two-circles")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--merge", default="", help="options of imprint merge, in one word")
    parser.add_argument("--imprint", default=".build/release/imprint")
    given, options = parsed(parser)

    deltas = []
    for user in range(1, given.users + 1):
        place = given.output / f"user-{user}"
        draw(given, user, place / "photos", given.photos, 1)
        deltas.append(str(place / "to-merge"))
        lines(
            given.imprint, "personalize", str(given.base), str(place / "photos"), "--output", deltas[-1], "--json",
            *options)
    merged = given.output / "merged.imprint"
    finished = lines(
        given.imprint, "merge", str(given.base), *deltas, "--output", str(merged), "--json", *given.merge.split())[-1]

    def answers(model, data):
        """Whether each picture was answered right, by its file."""
        *images, _ = lines(given.imprint, "evaluate", str(model), str(data), "--images", "--json")
        return {image["file"]: image["correct"] for image in images}

    def compared(data, group):
        before, after = answers(given.base, data), answers(merged, data)
        gains = [Gain(group, int(after[file]) - int(before[file])) for file in before]
        return share(before), share(after), gains

    rows, pairs = [], []
    for user in range(given.users + 1, 2 * given.users + 1):
        place = given.output / f"user-{user}"
        draw(given, user, place / "test", given.test, 2)
        before, after, gains = compared(place / "test", user)
        rows.append((before, after, after - before))
        pairs += gains
    print(f"| {given.users} other users | base | merged | gain |")
    print("|---|---|---|---|")
    columns = list(zip(*rows))
    for name, measure in [("median", statistics.median), ("mean", statistics.mean), ("lowest", min), ("highest", max)]:
        print(f"| {name} {text([measure(column) for column in columns])}")
    before, after, own = compared(given.evaluation, 0)
    print(f"| EVALUATION {text((before, after, after - before))}")
    mean, low, high = bootstrap(mean_gain, [pairs])
    print(
        f"\nPhoto by photo, other users gain {100 * mean:+.2f} points (95 % interval over users {100 * low:+.2f} to "
        f"{100 * high:+.2f}); {sum(row[2] > 0 for row in rows)} users gain, {sum(row[2] < 0 for row in rows)} lose.")
    pictures = [Gain(place, gain.value) for place, gain in enumerate(own)]
    mean, low, high = bootstrap(mean_gain, [pictures])
    print(f"EVALUATION gains {100 * mean:+.2f} points (95 % interval over pictures {100 * low:+.2f} to {100 * high:+.2f}).")
    print(f"{finished['users']} personalizations of {finished['examples']} photos, {finished['clipped']} clipped", end="")
    print(f", ε = {finished['epsilon']:.3g} for δ = {finished['delta']:g}." if "epsilon" in finished else ".")


def share(answers):
    return sum(answers.values()) / len(answers)


def mean_gain(gains, weights):
    """The mean gain, each counting as often as the weight of its group says."""
    total = sum(weights[gain.group] for gain in gains)
    return sum(weights[gain.group] * gain.value for gain in gains) / total if total else None


def text(row):
    before, after, gain = row
    return f"| {before:.1%} | {after:.1%} | {100 * gain:+.1f} |"


if __name__ == "__main__":
    main()
