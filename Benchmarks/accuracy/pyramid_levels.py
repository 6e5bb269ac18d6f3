"""Compares image pyramids of trained logo detectors on the photos that each detector was not trained on.

    python3 Benchmarks/accuracy/pyramid_levels.py KEPT PHOTOS [--imprint .build/release/imprint] [--groups GROUPS.json] \\
        --levels 96,152,240,384,608 --levels 48,64,80,112,176,272,432,688

KEPT is the folder of `imprint train-detector --folds N --keep KEPT` or of `artwork_only.py --keep KEPT`; PHOTOS are the same photos, of one logo
and without it. For each value of --levels, the script changes the levels in copies of the detectors, without training them again, and classifies
their photos. Prints a Markdown table with bootstrap intervals over groups: those in GROUPS.json, or single photos. Its last column is the change
of the AUC from the first row.
"""

import argparse
import json
import struct
import tempfile
from pathlib import Path

from comparison import numbers
from folds import read_groups, run_json
from intervals import Prediction, accuracy, auc, bootstrap, bootstrap_difference


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", type=Path)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--groups", type=Path, help="a JSON file with groups of photos")
    parser.add_argument("--levels", type=numbers, action="append", required=True, help="the sides of the levels, in pixels")
    args = parser.parse_args()

    files = sorted(args.kept.glob("*fold-*.imprint"))
    if not files:
        parser.error(f"{args.kept} has no detectors of folds.")
    folds = [(file, [image["file"] for image in json.loads(file.with_suffix(".json").read_text())["images"]]) for file in files]
    if args.groups:
        groups = read_groups(args.groups, args.photos)
    else:
        groups = [[str(args.photos / photo)] for _, photos in folds for photo in photos]
    group = {str(Path(file).relative_to(args.photos)): index for index, members in enumerate(groups) for file in members}

    print("| levels | pixels | accuracy | AUC | change of the AUC |")
    print("|---|---|---|---|---|")
    first = None
    for levels in args.levels:
        predictions = classify(args, folds, levels, group)
        first = first or (levels, predictions)
        pixels = sum(side**2 for side in levels) / sum(side**2 for side in first[0])
        values = bootstrap(accuracy, [predictions]), bootstrap(auc, [predictions]), bootstrap_difference(auc, [predictions], [first[1]])
        print(
            f"| {', '.join(map(str, levels))} | {pixels:.2f} | " + "{:.1%} ({:.1%} to {:.1%}) | ".format(*values[0])
            + "{:.3f} ({:.3f} to {:.3f}) | ".format(*values[1])
            + ("– |" if levels == first[0] else "{:+.3f} ({:+.3f} to {:+.3f}) |".format(*values[2])), flush=True)


def classify(args, folds, levels, group):
    """Returns the predictions of all folds with other levels."""
    predictions = []
    with tempfile.TemporaryDirectory() as folder:
        for model, photos in folds:
            copy = Path(folder) / "detector.imprint"
            logos = change_levels(model, levels, copy)
            results = run_json(args.imprint, "classify", str(copy), "--json", *(str(args.photos / photo) for photo in photos))
            for photo, result in zip(photos, results, strict=True):
                label = Path(photo).parts[0]
                confidence = {observation["label"]: observation["confidence"] for observation in result["observations"]}
                predictions.append(Prediction(
                    confidence[logos[0]], label == logos[0], max(confidence, key=confidence.get) == label, group[photo]))
    return predictions


def change_levels(model, levels, copy):
    """Copies a detector with other pyramid levels, None for its own ones, and returns the labels of its logos.

    docs/reference/model-file.md describes the format.
    """
    data = model.read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:end])
    head = json.loads(header["__metadata__"]["imprint.spotting"])
    head["levels"] = levels or head["levels"]
    header["__metadata__"]["imprint.spotting"] = json.dumps(head)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    copy.write_bytes(struct.pack("<Q", len(text)) + text + data[end:])
    return [logo["label"] for logo in head["marks"]]


if __name__ == "__main__":
    main()
