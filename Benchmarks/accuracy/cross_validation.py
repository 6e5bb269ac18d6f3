"""How well `imprint train` does on photos that it has not seen, fold by fold.

    python3 Benchmarks/accuracy/cross_validation.py PHOTOS [--imprint .build/release/imprint] [--folds 5] [--only 1,2] \\
        [--seeds 1,2,3] [--groups GROUPS.json] [--artwork-only] [--mirror] [--jobs 1] [--threads N] [--keep DIR] \\
        [-- OPTIONS OF imprint train]

The photos are divided into folds, so that those which belong together are in one: those that `imprint audit` finds, or those that
GROUPS.json lists (a list of lists of paths relative to PHOTOS; a photo that it does not name is a group of its own). For each fold a
model is trained on the others and evaluated on it. A seed is that of the folds and of the training. Prints a table in Markdown, then
the pooled predictions with intervals by bootstrap over groups.

--artwork-only leaves the photos of the labels of `--artwork LABEL=FILE` out of training, so that neither training nor calibration
sees a photo of them. --jobs folds are trained side by side, each on --threads threads. What is in DIR is not trained again, as long as it
is of the same photos and options; another build of imprint needs another DIR.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from folds import folds, grouped, lines, link, listed, parsed
from intervals import Prediction, accuracy, auc, bootstrap


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", type=numbers, help="the numbers of the folds to evaluate on, from 1; all where left out")
    parser.add_argument("--seeds", type=numbers, default=[1])
    parser.add_argument("--groups", type=Path, help="which photos belong together; what imprint audit finds where left out")
    parser.add_argument("--artwork-only", action="store_true", help="train without photos of the labels of --artwork")
    parser.add_argument("--mirror", action="store_true", help="evaluate with --mirror")
    parser.add_argument("--jobs", type=int, default=1, help="how many folds to train side by side")
    parser.add_argument("--threads", type=int, help="the threads of each; the cores divided by the jobs where left out")
    parser.add_argument("--keep", type=Path, help="a folder for models and predictions, which are not made again")
    given, options = parsed(parser)
    left_out = artwork_labels(options) if given.artwork_only else set()
    threads = given.threads or max(os.cpu_count() // given.jobs, 1)

    groups = listed(given.groups, given.photos) if given.groups else grouped(given.imprint, given.photos)
    group = {str(Path(file).relative_to(given.photos)): place for place, files in enumerate(groups) for file in files}
    work = []
    for seed in given.seeds:
        parts = folds(groups, given.folds, seed)
        for fold in given.only or range(1, given.folds + 1):
            train = [file for i, part in enumerate(parts) if i + 1 != fold for file in part]
            train = [file for file in train if Path(file).relative_to(given.photos).parts[0] not in left_out]
            work.append((seed, fold, train, parts[fold - 1]))

    rows, predictions = {}, {}
    print("| seed | fold | photos | accuracy, 95 % interval | AUC | log loss | calibration error | training |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(given.jobs) as pool:
        keep = given.keep or Path(temporary)
        results = pool.map(lambda item: measure(given, options, threads, keep, *item), work)
        for (seed, fold, _, _), result in zip(work, results):
            found = result["evaluation"]
            row = (found["accuracy"], found.get("auc"), found["logLoss"], found["calibrationError"], result["seconds"])
            rows.setdefault(seed, []).append(row)
            predictions.setdefault(seed, []).extend(pooled(result["images"], found["labels"][0], group))
            low, high = found["accuracyInterval"]
            print(text(seed, fold, found["images"], row, f" ({low:.1%} to {high:.1%})"), flush=True)
    means = [tuple(map(mean, zip(*rows[seed]))) for seed in given.seeds]
    for seed, row in zip(given.seeds, means):
        print(text(seed, "mean", len(predictions[seed]), row))
    spread = f" (deviation over seeds {statistics.stdev(row[0] for row in means):.1%})" if len(means) > 1 else ""
    print(text("all", "mean", "", tuple(map(mean, zip(*means))), spread))

    share = "{:.1%} (95 % interval {:.1%} to {:.1%})".format
    print(f"\nPooled over folds, intervals by bootstrap over groups: accuracy {share(*bootstrap(accuracy, predictions.values()))}", end="")
    area = bootstrap(auc, predictions.values()) if len(found["labels"]) == 2 else None
    print(", AUC {:.3f} ({:.3f} to {:.3f})".format(*area) if area else "")


def numbers(text):
    return [int(number) for number in text.split(",")]


def artwork_labels(options):
    """The labels of `--artwork LABEL=FILE` among the options of imprint train."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--artwork", action="append", default=[])
    labels = {value.split("=")[0] for value in parser.parse_known_args(options)[0].artwork}
    if not labels:
        sys.exit("--artwork-only: the options of imprint train have no --artwork LABEL=FILE.")
    return labels


def measure(given, options, threads, keep, seed, fold, train, test):
    """What a model of some photos says of others, and how long its training took; what was kept of it, where it was."""
    file = keep / f"seed-{seed}-fold-{fold}.json"
    run = {
        "options": options, "train": sorted(str(Path(path).relative_to(given.photos)) for path in train),
        "test": sorted(str(Path(path).relative_to(given.photos)) for path in test)}
    if given.mirror:
        run["mirror"] = True
    if file.exists():
        kept = json.loads(file.read_text())
        if kept["run"] != run:
            sys.exit(f"{file} is of other photos, folds or options; name another folder with --keep.")
        return kept
    keep.mkdir(parents=True, exist_ok=True)
    model = file.with_suffix(".imprint")
    with tempfile.TemporaryDirectory() as place:
        place = Path(place).resolve()
        link(train, given.photos, place / "train")
        link(test, given.photos, place / "test")
        finished = lines(
            given.imprint, "train", str(place / "train"), "--output", str(model), "--seed", str(seed), "--threads", str(threads),
            "--json", *options)[-1]
        *images, found = lines(
            given.imprint, "evaluate", str(model), str(place / "test"), "--images", "--threads", str(threads), "--json",
            *(["--mirror"] if given.mirror else []))
        for image in images:
            image["file"] = str(Path(image["file"]).relative_to(place / "test"))
    result = {"run": run, "seconds": finished["seconds"], "evaluation": found, "images": images}
    # Whole or not at all: what is there counts as done.
    file.with_suffix(".part").write_text(json.dumps(result))
    file.with_suffix(".part").rename(file)
    return result


def pooled(images, label, group):
    for image in images:
        score = next(said["confidence"] for said in image["observations"] if said["label"] == label)
        yield Prediction(score, image["label"] == label, image["correct"], group[image["file"]])


def mean(values):
    values = [value for value in values if value is not None]
    return statistics.mean(values) if values else None


def text(seed, fold, photos, row, note=""):
    share, area, loss, error, seconds = row
    area = "–" if area is None else f"{area:.3f}"
    return f"| {seed} | {fold} | {photos} | {share:.1%}{note} | {area} | {loss:.3f} | {error:.1%} | {seconds:.0f} s |"


if __name__ == "__main__":
    main()
