"""Measures how much each effect of composites adds to a detector that is trained from artwork, without photos of the logo.

    python3 Benchmarks/accuracy/compositing_ablation.py PHOTOS RESULTS [--rows NAME,NAME] [--imprint .build/release/imprint] [--folds 5] \\
        [--only 1,2] [--seeds 1] [--groups GROUPS.json] [--threads N] -- --artwork LABEL=RECIPE [OPTIONS OF imprint train-detector]

RECIPE is the name or the path of an artwork recipe. The script trains with the standard effects, without each of them, without all of them, and
with effects that are not standard; datasets/README.md describes the effects. Another row has no hard negatives that look like the logo. Training
and calibration do not use photos of the logo; these are only evaluated, as in artwork_only.py. The folds depend on the seed.
Prints a Markdown table with bootstrap intervals over groups. Differences are paired by photo. RESULTS/table.md has the finished rows while the
script runs, and RESULTS keeps them, so that an interrupted run continues. --rows selects rows by the names that the table has.
"""

import argparse
import json
import sys
from pathlib import Path

from comparison import Row, add_arguments, artwork_labels, compare, parsed_options, shows
from folds import link, parse_arguments

STANDARD = [
    "rotation", "tilt", "inks", "outlines", "roughness", "words", "plates", "halos", "surface", "occluders", "camera"]
OTHERS = ["materials", "curvature", "perspective", "occlusion", "light"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("--rows", type=lambda text: text.split(","), help="the rows to measure (default: all)")
    args, options = parse_arguments(parser)
    excluded = artwork_labels(options)
    artwork = parsed_options(options).artwork
    if len(artwork) != 1:
        sys.exit(f"The options have {len(artwork)} --artwork options, expected one.")
    label, source = artwork[0].split("=", 1)
    if "/" not in source and "." not in source:
        source = f"datasets/{source}.json"
    if not source.endswith(".json") or not Path(source).exists():
        sys.exit(f"--artwork is {artwork[0]}, expected LABEL= and a recipe, such as two-circles.")
    recipe = json.loads(Path(source).read_text())
    if "compositing" not in recipe:
        sys.exit(f'{source} has no section "compositing", expected one. See datasets/README.md.')

    rows = []
    for name, changes in variants().items():
        file = args.results.resolve() / "recipes" / f"{name.replace(' ', '-')}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**recipe, "compositing": {**recipe["compositing"], **changes}}, indent=2))
        rows.append(Row(name, preparation(args, excluded, replaced(options, artwork[0], f"{label}={file}"))))
    if unknown := set(args.rows or []) - {row.name for row in rows}:
        sys.exit(f"--rows has {sorted(unknown)[0]}, expected some of: {', '.join(row.name for row in rows)}.")
    # The first row is the one that the others are compared with.
    compare(args, options, rows[:1] + [row for row in rows[1:] if row.name in (args.rows or [row.name])])


def variants():
    """Returns the changes of the section `compositing` for each row."""
    rows = {"standard effects": {}}
    rows["no effects"] = {"effects": []}
    for name in STANDARD:
        rows[f"without {name}"] = {"effects": [other for other in STANDARD if other != name]}
    rows["without look-alikes"] = {"nearMisses": [{"kind": "nothing", "weight": 1}]}
    for name in OTHERS:
        rows[f"with {name}"] = {"effects": [*STANDARD, name]}
    rows["with all effects"] = {"effects": STANDARD + OTHERS}
    return rows


def replaced(options, old, new):
    """Returns the options with another value of --artwork."""
    return [option.replace(old, new) if option in (old, f"--artwork={old}") else option for option in options]


def preparation(args, excluded, options):
    """Returns the function that links the photos without the logo."""
    def prepare(folder, train, seed):
        link([file for file in train if not shows(file, excluded)], args.photos, folder / "train")
        return ["--photos", str(folder / "train"), *options]

    return prepare


if __name__ == "__main__":
    main()
