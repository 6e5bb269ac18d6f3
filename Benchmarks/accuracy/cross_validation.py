"""How well `imprint train` does on photos that it has not seen, fold by fold.

    python3 Benchmarks/accuracy/cross_validation.py PHOTOS [--imprint .build/release/imprint] [--folds 5] [--only 1,2] \\
        [--seed 1] [-- OPTIONS OF imprint train]

The photos are divided into folds, so that those which belong together are in one (folds.py). For each fold a model is trained on the
others and evaluated on it. Prints a table in Markdown.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from folds import folds, grouped, lines, link


def main():
    arguments = sys.argv[1:]
    options = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", help="the numbers of the folds to evaluate on, from 1; all where left out")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments[: arguments.index("--")] if "--" in arguments else arguments)

    parts = folds(grouped(given.imprint, given.photos), given.folds, given.seed)
    wanted = [int(number) - 1 for number in given.only.split(",")] if given.only else range(given.folds)
    rows = []
    print("| fold | photos | accuracy, 95 % interval | AUC | log loss | calibration error | training |")
    print("|---|---|---|---|---|---|---|")
    for held_out in wanted:
        with tempfile.TemporaryDirectory() as place:
            place = Path(place)
            link([file for i, part in enumerate(parts) if i != held_out for file in part], given.photos, place / "train")
            link(parts[held_out], given.photos, place / "test")
            model = str(place / "model.imprint")
            finished = lines(
                given.imprint, "train", str(place / "train"), "--output", model, "--seed", str(given.seed), "--json",
                *options)[-1]
            found = lines(given.imprint, "evaluate", model, str(place / "test"), "--json")[-1]
        rows.append([found["accuracy"], found.get("auc") or 0, found["logLoss"], found["calibrationError"], finished["seconds"]])
        low, high = found["accuracyInterval"]
        print(
            f"| {held_out + 1} | {found['images']} | {found['accuracy']:.1%} ({low:.1%} to {high:.1%}) | {rows[-1][1]:.3f} | "
            f"{rows[-1][2]:.3f} | {rows[-1][3]:.1%} | {rows[-1][4]:.0f} s |", flush=True)
    accuracy, auc, loss, error, seconds = [statistics.mean(column) for column in zip(*rows)]
    print(f"| mean | | {accuracy:.1%} | {auc:.3f} | {loss:.3f} | {error:.1%} | {seconds:.0f} s |")


if __name__ == "__main__":
    main()
