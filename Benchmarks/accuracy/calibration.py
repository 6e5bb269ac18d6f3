"""Measures the effect of calibration on held-out photos.

    python3 Benchmarks/accuracy/calibration.py PHOTOS [--imprint .build/release/imprint] [--folds 4] [-- OPTIONS OF imprint train]

Cross-validation: copies, near-duplicates and bursts, as found by `imprint audit`, are in one fold. For each fold, a model is trained on the
other folds with a validation set for calibration, once with calibration and once without, and both models are evaluated on the fold. Prints
a Markdown table.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from folds import audit_groups, link, make_folds, parse_arguments, run_json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args, options = parse_arguments(parser)

    parts = make_folds(audit_groups(args.imprint, args.photos), args.folds, args.seed)
    rows = []
    print("| fold | photos | accuracy | temperature | ECE, before | after | log loss, before | after |")
    print("|---|---|---|---|---|---|---|---|")
    for held_out in range(args.folds):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            link([file for i, part in enumerate(parts) if i != held_out for file in part], args.photos, folder / "train")
            link(parts[held_out], args.photos, folder / "test")
            row = {}
            for name, extra in (("after", []), ("before", ["--no-calibration"])):
                model = str(folder / f"{name}.imprint")
                finished = run_json(
                    args.imprint, "train", str(folder / "train"), "--output", model, "--validation", "0.25",
                    "--seed", str(args.seed), "--json", *options, *extra)[-1]
                row[name] = run_json(args.imprint, "evaluate", model, str(folder / "test"), "--json")[-1]
                row["calibration"] = row.get("calibration") or finished.get("calibration")
            assert row["before"]["confusion"] == row["after"]["confusion"], "calibration must not change predictions"
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
