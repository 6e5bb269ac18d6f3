"""Measures the accuracy of a logo detector that is trained without photos of the logo.

    python3 Benchmarks/accuracy/artwork_only.py PHOTOS [--imprint .build/release/imprint] [--folds 5] [--only 1,2] [--seed 1] \\
        [--groups GROUPS.json] [--jobs 1] [--threads N] [--keep FOLDER] -- --artwork LABEL=FILE [OPTIONS OF imprint train-detector]

Runs a cross-validation like `imprint train-detector --folds`, but training and calibration do not use the photos of the labels of
`--artwork`. These photos are only evaluated. Groups of near-duplicates and bursts are in one fold: the groups that `imprint audit` finds,
or those in GROUPS.json (a list of lists of paths relative to PHOTOS). --jobs folds are trained in parallel, each on --threads threads.
Prints a Markdown table, then metrics of the pooled predictions with bootstrap intervals over groups.
"""

import argparse
import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from comparison import artwork_labels, numbers, predictions_of, train_and_evaluate
from folds import audit_groups, link, make_folds, parse_arguments, read_groups
from intervals import accuracy, auc, bootstrap


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", type=numbers, help="the numbers of the folds to evaluate, from 1 (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--groups", type=Path, help="a JSON file with groups of photos (default: those that imprint audit finds)")
    parser.add_argument("--jobs", type=int, default=1, help="the number of folds to train in parallel")
    parser.add_argument("--threads", type=int, help="the number of threads of each job (default: the cores divided by the jobs)")
    parser.add_argument("--keep", type=Path, help="a folder that keeps the detector and the predictions of each fold")
    args, options = parse_arguments(parser)
    excluded = artwork_labels(options)
    threads = args.threads or max(os.cpu_count() // args.jobs, 1)

    groups = read_groups(args.groups, args.photos) if args.groups else audit_groups(args.imprint, args.photos)
    group = {str(Path(file).relative_to(args.photos)): index for index, files in enumerate(groups) for file in files}
    parts = make_folds(groups, args.folds, args.seed)
    work = []
    for fold in args.only or range(1, args.folds + 1):
        train = [file for i, part in enumerate(parts) if i + 1 != fold for file in part]
        train = [file for file in train if Path(file).relative_to(args.photos).parts[0] not in excluded]
        work.append((fold, train, parts[fold - 1]))

    predictions = []
    print("| fold | photos | accuracy, 95 % interval | AUC | log loss | ECE | training |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with ThreadPoolExecutor(args.jobs) as pool:
        results = pool.map(lambda item: measure(args, options, threads, *item), work)
        for fold, (seconds, images, evaluation) in zip(args.only or range(1, args.folds + 1), results):
            predictions.extend(predictions_of(images, group))
            low, high = evaluation["accuracyInterval"]
            area = evaluation.get("auc")
            print(
                f"| {fold} | {evaluation['images']} | {evaluation['accuracy']:.1%} ({low:.1%} to {high:.1%}) | "
                f"{'–' if area is None else f'{area:.3f}'} | {evaluation['logLoss']:.3f} | {evaluation['calibrationError']:.1%} | "
                f"{seconds:.0f} s |", flush=True)

    interval = "{:.1%} (95 % interval {:.1%} to {:.1%})".format
    print(f"\nPooled over folds, with bootstrap intervals over groups: accuracy {interval(*bootstrap(accuracy, [predictions]))}", end="")
    area = bootstrap(auc, [predictions]) if len(evaluation["labels"]) == 2 else None
    print(", AUC {:.3f} ({:.3f} to {:.3f})".format(*area) if area else "")


def measure(args, options, threads, fold, train, test):
    """Trains and evaluates the model of a fold: the seconds of training, the predictions and the evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder).resolve()
        link(train, args.photos, folder / "train")
        link(test, args.photos, folder / "test")
        seconds, images, evaluation = train_and_evaluate(
            args.imprint, folder, ["--photos", str(folder / "train"), "--seed", str(args.seed), *options], threads)
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(folder / "model.imprint", args.keep / f"fold-{fold}.imprint")
            (args.keep / f"fold-{fold}.json").write_text(json.dumps({"images": images}))
        return seconds, images, evaluation


if __name__ == "__main__":
    main()
