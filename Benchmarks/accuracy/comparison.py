"""Comparisons of detectors: trains and evaluates a detector for each row, seed and fold, and compares each row with the first one.

A folder of results keeps the predictions of each detector, so that an interrupted comparison continues if it is run again.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Callable, NamedTuple

from folds import audit_groups, link, make_folds, read_groups, run_json
from intervals import Prediction, accuracy, auc, bootstrap, bootstrap_difference


class Row(NamedTuple):
    """A way of training a detector."""
    name: str
    # Links the photos to train on into a folder, and returns options of imprint train-detector. Its arguments are the folder, the
    # photos of the other folds, and the seed.
    prepare: Callable


def add_arguments(parser):
    """Adds the arguments that all comparisons have."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("photos", type=lambda path: Path(path).resolve())
    parser.add_argument("results", type=Path, help="a folder that keeps the predictions of finished detectors")
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--only", type=numbers, help="the numbers of the folds to evaluate, from 1 (default: all)")
    parser.add_argument("--seeds", type=numbers, default=[1], help="the seeds of training, such as 1,2,3 (default: 1)")
    parser.add_argument("--groups", type=Path, help="a JSON file with groups of photos (default: those that imprint audit finds)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="the number of threads (default: one per core)")


def numbers(text):
    return [int(number) for number in text.split(",")]


def artwork_labels(options):
    """Returns the labels of `--artwork LABEL=FILE` in the options of imprint train-detector."""
    labels = {value.split("=")[0] for value in parsed_options(options).artwork}
    if not labels:
        sys.exit("The options of imprint train-detector have no --artwork LABEL=FILE.")
    return labels


def parsed_options(options):
    """Returns the options of imprint train-detector that comparisons read: `artwork` and `epochs`."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--artwork", action="append", default=[])
    parser.add_argument("--epochs", type=int, default=20)
    return parser.parse_known_args(options)[0]


def shows(file, labels):
    """Returns whether a photo shows a logo, because its folder has one of the labels."""
    return Path(file).parts[-2] in labels


def train_and_evaluate(imprint, folder, options, threads):
    """Trains a detector, and evaluates it on folder/test: the seconds of training, the predictions and the evaluation."""
    model = str(folder / "model.imprint")
    finished = run_json(
        imprint, "train-detector", "--output", model, "--threads", str(threads), "--json", *options)[-1]
    *images, evaluation = run_json(
        imprint, "evaluate", model, str(folder / "test"), "--images", "--threads", str(threads), "--json")
    for image in images:
        image["file"] = str(Path(image["file"]).relative_to(folder / "test"))
        image["score"] = next(one["confidence"] for one in image["observations"] if one["label"] == evaluation["labels"][0])
        image["isPositive"] = image["label"] == evaluation["labels"][0]
    return finished["seconds"], images, evaluation


def predictions_of(images, group):
    """Returns the predictions for photos, whose groups are given by file."""
    return [Prediction(image["score"], image["isPositive"], image["correct"], group[image["file"]]) for image in images]


def compare(args, options, rows):
    """Trains the detectors that are not finished, and prints the comparison as a Markdown table."""
    groups = read_groups(args.groups, args.photos) if args.groups else audit_groups(args.imprint, args.photos)
    group = {str(Path(file).relative_to(args.photos)): index for index, files in enumerate(groups) for file in files}
    folds = args.only or list(range(1, args.folds + 1))
    if not all(1 <= fold <= args.folds for fold in folds):
        sys.exit(f"--only is {','.join(map(str, folds))}, expected numbers from 1 to {args.folds}.")
    check_settings(args, options, group)
    finished = {}
    for seed in args.seeds:
        parts = make_folds(groups, args.folds, seed)
        for row in rows:
            for fold in folds:
                train = [file for number, part in enumerate(parts, 1) if number != fold for file in part]
                file = result_file(args, row, seed, fold)
                is_new = not file.exists()
                if is_new:
                    write(file, json.dumps(run(args, row, seed, fold, train, parts[fold - 1])))
                finished[row.name, seed, fold] = json.loads(file.read_text())
                if is_new:
                    write(args.results / "table.md", table(rows, finished, group))
    text = table(rows, finished, group)
    write(args.results / "table.md", text)
    print(text, end="")


def check_settings(args, options, group):
    """Stores what the results depend on, and exits if the folder has results of other settings."""
    args.results.mkdir(parents=True, exist_ok=True)
    file = args.results / "settings.json"
    settings = {"photos": str(args.photos), "folds": args.folds, "options": options, "groups": group}
    if not file.exists():
        write(file, json.dumps(settings))
    earlier = json.loads(file.read_text())
    for name, value in settings.items():
        if earlier.get(name) != value:
            text = "" if name == "groups" else f": {earlier.get(name)}, not {value}"
            sys.exit(f"{args.results} has results with other {name}{text}. Choose another folder.")


def result_file(args, row, seed, fold):
    """Returns the file that keeps the result of a row."""
    name = re.sub("[^a-z0-9]+", "-", row.name.lower()).strip("-")
    return args.results / f"{name}-seed-{seed}-fold-{fold}.json"


def run(args, row, seed, fold, train, test):
    """Trains and evaluates the detector of a row."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder).resolve()
        options = row.prepare(folder, train, seed)
        link(test, args.photos, folder / "test")
        seconds, images, evaluation = train_and_evaluate(
            args.imprint, folder, ["--seed", str(seed), *options], args.threads)
    for image in images:
        del image["observations"]
    print(f"{row.name}, seed {seed}, fold {fold}: {evaluation['accuracy']:.1%}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return {"row": row.name, "seconds": seconds, "images": images, "evaluation": evaluation}


def write(file, text):
    """Writes a file in one step, so that an interruption does not leave a part of it."""
    temporary = file.with_suffix(".temporary")
    temporary.write_text(text)
    os.replace(temporary, file)


def table(rows, finished, group):
    """Returns the Markdown table of the rows; each row has the seeds and folds that are also finished for the first row."""
    lines = [
        f"| training | seeds | photos | accuracy, 95 % interval | AUC, 95 % interval | accuracy minus {rows[0].name} | AUC minus {rows[0].name} "
        "| training time |",
        "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        runs = {}
        for (name, seed, fold), result in finished.items():
            if name == row.name and (rows[0].name, seed, fold) in finished:
                runs.setdefault(seed, []).append((result, finished[rows[0].name, seed, fold]))
        if runs:
            lines.append(row_text(row, rows[0], runs, group))
    return "\n".join(lines) + "\n"


def row_text(row, first, runs, group):
    """Returns a line of the table; `runs` has the results of the row and of the first row in each fold, by seed."""
    # The predictions of a seed are pooled over folds, and the metrics are means over seeds.
    own, others = ([
        [prediction for pair in pairs for prediction in predictions_of(pair[which]["images"], group)]
        for pairs in runs.values()] for which in (0, 1))
    results = [pair[0] for pairs in runs.values() for pair in pairs]
    cells = [row.name, str(len(runs)), str(sum(len(result["images"]) for result in results))]
    cells.append("{:.1%} ({:.1%} to {:.1%})".format(*bootstrap(accuracy, own)))
    area = bootstrap(auc, own)
    cells.append("{:.3f} ({:.3f} to {:.3f})".format(*area) if area else "–")
    if row.name == first.name:
        cells += ["–", "–"]
    else:
        change = bootstrap_difference(accuracy, own, others)
        cells.append("{:+.1f} ({:+.1f} to {:+.1f}) points".format(*(100 * value for value in change)))
        area = bootstrap_difference(auc, own, others)
        cells.append("{:+.3f} ({:+.3f} to {:+.3f})".format(*area) if area else "–")
    cells.append(f"{sum(result['seconds'] for result in results) / len(results):.0f} s")
    return f"| {' | '.join([cells[0]] + [cell.replace('%', ' %') for cell in cells[1:]])} |"
