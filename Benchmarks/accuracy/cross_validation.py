"""Measures the accuracy of `imprint train` by cross-validation.

    python3 Benchmarks/accuracy/cross_validation.py PHOTOS [--imprint .build/release/imprint] [--folds 5] [--only 1,2] \\
        [--seeds 1,2,3] [--groups GROUPS.json] [--artwork-only] [--mirror] [--jobs 1] [--threads N] [--keep DIR] \\
        [-- OPTIONS OF imprint train]

Groups of near-duplicates and bursts are in one fold: the groups that `imprint audit` finds, or those in GROUPS.json (a list of lists of
paths relative to PHOTOS; a photo that is not listed is a separate group). For each fold, a model is trained on the other folds and
evaluated on the fold. A seed applies to the folds and to training. Prints a Markdown table, then metrics of the pooled predictions with
bootstrap intervals over groups.

--artwork-only excludes the photos of the labels of `--artwork LABEL=FILE` from training and calibration. --jobs folds are trained in
parallel, each on --threads threads. Models in DIR are not trained again if photos and options are the same; another build of imprint needs
another DIR.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from folds import audit_groups, link, make_folds, parse_arguments, read_groups, run_json
from intervals import Prediction, accuracy, auc, bootstrap


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", type=numbers, help="the numbers of the folds to evaluate, from 1 (default: all)")
    parser.add_argument("--seeds", type=numbers, default=[1])
    parser.add_argument("--groups", type=Path, help="a JSON file with groups of photos (default: those that imprint audit finds)")
    parser.add_argument("--artwork-only", action="store_true", help="train without photos of the labels of --artwork")
    parser.add_argument("--mirror", action="store_true", help="evaluate with --mirror")
    parser.add_argument("--jobs", type=int, default=1, help="the number of folds to train in parallel")
    parser.add_argument("--threads", type=int, help="the number of threads of each job (default: the cores divided by the jobs)")
    parser.add_argument("--keep", type=Path, help="a folder that keeps models and predictions, which are not computed again")
    args, options = parse_arguments(parser)
    excluded = artwork_labels(options) if args.artwork_only else set()
    threads = args.threads or max(os.cpu_count() // args.jobs, 1)

    groups = read_groups(args.groups, args.photos) if args.groups else audit_groups(args.imprint, args.photos)
    group = {str(Path(file).relative_to(args.photos)): index for index, files in enumerate(groups) for file in files}
    work = []
    for seed in args.seeds:
        parts = make_folds(groups, args.folds, seed)
        for fold in args.only or range(1, args.folds + 1):
            train = [file for i, part in enumerate(parts) if i + 1 != fold for file in part]
            train = [file for file in train if Path(file).relative_to(args.photos).parts[0] not in excluded]
            work.append((seed, fold, train, parts[fold - 1]))

    rows, predictions = {}, {}
    print("| seed | fold | photos | accuracy, 95 % interval | AUC | log loss | ECE | training |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(args.jobs) as pool:
        keep = args.keep or Path(temporary)
        results = pool.map(lambda item: measure(args, options, threads, keep, *item), work)
        for (seed, fold, _, _), result in zip(work, results):
            evaluation = result["evaluation"]
            row = (
                evaluation["accuracy"], evaluation.get("auc"), evaluation["logLoss"], evaluation["calibrationError"],
                result["seconds"])
            rows.setdefault(seed, []).append(row)
            predictions.setdefault(seed, []).extend(pooled(result["images"], evaluation["labels"][0], group))
            low, high = evaluation["accuracyInterval"]
            print(text(seed, fold, evaluation["images"], row, f" ({low:.1%} to {high:.1%})"), flush=True)
    means = [tuple(map(mean, zip(*rows[seed]))) for seed in args.seeds]
    for seed, row in zip(args.seeds, means):
        print(text(seed, "mean", len(predictions[seed]), row))
    spread = f" (standard deviation over seeds {statistics.stdev(row[0] for row in means):.1%})" if len(means) > 1 else ""
    print(text("all", "mean", "", tuple(map(mean, zip(*means))), spread))

    interval = "{:.1%} (95 % interval {:.1%} to {:.1%})".format
    print(f"\nPooled over folds, with bootstrap intervals over groups: accuracy {interval(*bootstrap(accuracy, predictions.values()))}", end="")
    area = bootstrap(auc, predictions.values()) if len(evaluation["labels"]) == 2 else None
    print(", AUC {:.3f} ({:.3f} to {:.3f})".format(*area) if area else "")


def numbers(text):
    return [int(number) for number in text.split(",")]


def artwork_labels(options):
    """Returns the labels of `--artwork LABEL=FILE` in the options of imprint train."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--artwork", action="append", default=[])
    labels = {value.split("=")[0] for value in parser.parse_known_args(options)[0].artwork}
    if not labels:
        sys.exit("--artwork-only: the options of imprint train have no --artwork LABEL=FILE.")
    return labels


def measure(args, options, threads, keep, seed, fold, train, test):
    """Trains and evaluates the model of a fold, or reads the kept result."""
    file = keep / f"seed-{seed}-fold-{fold}.json"
    run = {
        "options": options, "train": sorted(str(Path(path).relative_to(args.photos)) for path in train),
        "test": sorted(str(Path(path).relative_to(args.photos)) for path in test)}
    if args.mirror:
        run["mirror"] = True
    if file.exists():
        kept = json.loads(file.read_text())
        if kept["run"] != run:
            sys.exit(f"{file} has other photos, folds or options; name another folder with --keep.")
        return kept
    keep.mkdir(parents=True, exist_ok=True)
    model = file.with_suffix(".imprint")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder).resolve()
        link(train, args.photos, folder / "train")
        link(test, args.photos, folder / "test")
        finished = run_json(
            args.imprint, "train", str(folder / "train"), "--output", str(model), "--seed", str(seed), "--threads", str(threads),
            "--json", *options)[-1]
        *images, evaluation = run_json(
            args.imprint, "evaluate", str(model), str(folder / "test"), "--images", "--threads", str(threads), "--json",
            *(["--mirror"] if args.mirror else []))
        for image in images:
            image["file"] = str(Path(image["file"]).relative_to(folder / "test"))
    result = {"run": run, "seconds": finished["seconds"], "evaluation": evaluation, "images": images}
    # Rename a complete file, because an existing file is a finished fold.
    file.with_suffix(".part").write_text(json.dumps(result))
    file.with_suffix(".part").rename(file)
    return result


def pooled(images, label, group):
    for image in images:
        score = next(one["confidence"] for one in image["observations"] if one["label"] == label)
        yield Prediction(score, image["label"] == label, image["correct"], group[image["file"]])


def mean(values):
    values = [value for value in values if value is not None]
    return statistics.mean(values) if values else None


def text(seed, fold, photos, row, note=""):
    accuracy, area, loss, error, seconds = row
    area = "–" if area is None else f"{area:.3f}"
    return f"| {seed} | {fold} | {photos} | {accuracy:.1%}{note} | {area} | {loss:.3f} | {error:.1%} | {seconds:.0f} s |"


if __name__ == "__main__":
    main()
