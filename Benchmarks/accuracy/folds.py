"""Folds of a data set that keep copies, near-duplicates and bursts together, as found by `imprint audit`."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path


def parse_arguments(parser):
    """Returns the parsed arguments, and the arguments after "--", which are options of imprint."""
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return parser.parse_args(arguments[:end]), arguments[end + 1 :]


def run_json(*command):
    """Runs a command, and returns the JSON objects that it prints; exits if the command fails."""
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def photo_files(photos):
    """Returns the files of the data set, sorted."""
    return sorted(str(path) for label in photos.iterdir() if label.is_dir() for path in label.rglob("*") if path.is_file())


def read_groups(file, photos):
    """Returns the groups of a JSON file, a list of lists of paths relative to the data set; each other file is a separate group."""
    groups = [[str(photos / path) for path in group] for group in json.loads(file.read_text())]
    named = [path for group in groups for path in group]
    files = photo_files(photos)
    if unknown := set(named) - set(files):
        sys.exit(f"{file} lists {sorted(unknown)[0]}, which does not exist; expected paths relative to {photos}.")
    if len(named) > len(set(named)):
        sys.exit(f"{file} lists a photo twice; expected each photo in one group.")
    return groups + [[path] for path in files if path not in set(named)]


def audit_groups(imprint, photos):
    """Returns the files of the data set in the groups of near-duplicates and bursts that imprint audit finds."""
    files = photo_files(photos)
    root = {file: file for file in files}

    def find(file):
        while root[file] != file:
            file = root[file]
        return file

    for finding in run_json(imprint, "audit", str(photos), "--json"):
        if finding.get("kind") in ("copies", "nearDuplicates", "bursts", "acrossLabels"):
            similar = [str(Path(file)) for file in finding["files"]]
            for file in similar[1:]:
                root[find(file)] = find(similar[0])
    groups = {}
    for file in files:
        groups.setdefault(find(file), []).append(file)
    return list(groups.values())


def make_folds(groups, count, seed):
    """Assigns groups, the largest first, to the fold that has the fewest photos of the label of the group."""
    groups = list(groups)
    random.Random(seed).shuffle(groups)
    parts = [[] for _ in range(count)]
    for group in sorted(groups, key=len, reverse=True):
        label = Path(group[0]).parts[-2]
        fewest = min(parts, key=lambda part: (sum(Path(file).parts[-2] == label for file in part), len(part)))
        fewest += group
    return parts


def link(files, photos, folder):
    for file in files:
        target = folder / Path(file).relative_to(photos)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(file, target)
