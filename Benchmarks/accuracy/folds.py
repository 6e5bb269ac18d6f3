"""Folds of a data set that keep together what `imprint audit` finds to belong together: copies, near-duplicates, bursts."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path


def parsed(parser):
    """What the command line says, and what is behind its "--": options of imprint train."""
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return parser.parse_args(arguments[:end]), arguments[end + 1 :]


def lines(*command):
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def photo_files(photos):
    """The files of the data set, in their order."""
    return sorted(str(path) for label in photos.iterdir() if label.is_dir() for path in label.rglob("*") if path.is_file())


def listed(file, photos):
    """The files of the data set in the groups of a JSON file, a list of lists of paths relative to it; each other one by itself."""
    groups = [[str(photos / path) for path in group] for group in json.loads(file.read_text())]
    named = [path for group in groups for path in group]
    files = photo_files(photos)
    if unknown := set(named) - set(files):
        sys.exit(f"{file} names {sorted(unknown)[0]}, which is not there; expected paths relative to {photos}.")
    if len(named) > len(set(named)):
        sys.exit(f"{file} names a photo twice; expected each in one group.")
    return groups + [[path] for path in files if path not in set(named)]


def grouped(imprint, photos):
    """The files of the data set in groups that show the same."""
    files = photo_files(photos)
    root = {file: file for file in files}

    def find(file):
        while root[file] != file:
            file = root[file]
        return file

    for finding in lines(imprint, "audit", str(photos), "--json"):
        if finding.get("kind") in ("copies", "nearDuplicates", "bursts", "acrossLabels"):
            together = [str(Path(file)) for file in finding["files"]]
            for file in together[1:]:
                root[find(file)] = find(together[0])
    groups = {}
    for file in files:
        groups.setdefault(find(file), []).append(file)
    return list(groups.values())


def folds(groups, count, seed):
    """Groups dealt out, the largest first, each to the fold that has the fewest photos of its label."""
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
