"""What calibration is worth on photos that the model has not seen.

    python3 Benchmarks/accuracy/calibration.py PHOTOS [--imprint .build/release/imprint] [--folds 4] [-- OPTIONS OF imprint train]

The photos are divided into folds, so that those which `imprint audit` finds to belong together (copies, near-duplicates, bursts)
are in one. For each fold a model is trained on the others, a part of which it keeps back to validate on and to calibrate with, once with
calibration and once without, and both are evaluated on the fold. Prints a table in Markdown.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from folds import folds, grouped, lines, link, parsed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    given, options = parsed(parser)

    parts = folds(grouped(given.imprint, given.photos), given.folds, given.seed)
    rows = []
    print("| fold | photos | accuracy | temperature | calibration error, before | after | log loss, before | after |")
    print("|---|---|---|---|---|---|---|---|")
    for held_out in range(given.folds):
        with tempfile.TemporaryDirectory() as place:
            place = Path(place)
            link([file for i, part in enumerate(parts) if i != held_out for file in part], given.photos, place / "train")
            link(parts[held_out], given.photos, place / "test")
            row = {}
            for name, extra in (("after", []), ("before", ["--no-calibration"])):
                model = str(place / f"{name}.imprint")
                finished = lines(
                    given.imprint, "train", str(place / "train"), "--output", model, "--validation", "0.25",
                    "--seed", str(given.seed), "--json", *options, *extra)[-1]
                row[name] = lines(given.imprint, "evaluate", model, str(place / "test"), "--json")[-1]
                row["calibration"] = row.get("calibration") or finished.get("calibration")
            assert row["before"]["confusion"] == row["after"]["confusion"], "calibration must not change what is said"
            rows.append((
                row["after"]["accuracy"], row["calibration"]["temperature"], row["before"]["calibrationError"],
                row["after"]["calibrationError"], row["before"]["logLoss"], row["after"]["logLoss"]))
            print(text(held_out + 1, row["after"]["images"], rows[-1]), flush=True)
    means = [statistics.mean(column) for column in zip(*rows)]
    print(text("mean", sum(len(part) for part in parts), means))


def text(name, images, row):
    accuracy, temperature, error_before, error_after, loss_before, loss_after = row
    return (
        f"| {name} | {images} | {accuracy:.1%} | {temperature:.2f} | {error_before:.1%} | {error_after:.1%} | "
        f"{loss_before:.3f} | {loss_after:.3f} |")


if __name__ == "__main__":
    main()
