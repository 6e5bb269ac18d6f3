"""Draws scenes with logos, looks for the logos with their artwork, and makes the pictures of docs/results/logo-matching.md.

    python3 Benchmarks/accuracy/matching_scenes.py OUTPUT [--imprint .build/release/imprint] [--scenes 40] [--seed 1]

Draws --scenes scenes of each of the logos letter, leaf and crest, and as many without any of them: half of those show nothing, the others
a shape or a word. `imprint detect --artwork` looks for all three logos in all scenes. Prints a Markdown table: the scenes whose logo is
found, those with another logo, and the false alarms, with 95 % Wilson intervals. OUTPUT/hits.jpg and OUTPUT/mistakes.jpg show random hits,
and misses and false alarms. Needs Pillow.
"""

import argparse
import json
import math
import random
import subprocess
from pathlib import Path

from PIL import Image

from drawn_scenes import LOGOS, artwork, scene, shape, word

TILE = (240, 200)  # the size of a picture on a sheet, in pixels
COLUMNS = 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--scenes", type=int, default=40, help="the number of scenes of each logo, and of none")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    scenes = args.output / "scenes"
    scenes.mkdir(parents=True, exist_ok=True)
    options = []
    for name, layers in LOGOS.items():
        artwork(layers()).save(args.output / f"{name}.png")
        options += ["--artwork", f"{name}={args.output / name}.png"]
    labels = {}
    for name in [*LOGOS, "none"]:
        for index in range(args.scenes):
            generator = random.Random(f"{args.seed} {name} {index}")
            layers = LOGOS[name]() if name in LOGOS else generator.choice((shape, word))(generator) if index % 2 else None
            file = scenes / f"{name}-{index:03}.png"
            scene(generator, layers).save(file)
            labels[file.name] = name
    command = [args.imprint, "detect", *options, "--json", "--annotate", args.output / "annotated", scenes]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    found = {Path(line["file"]).name: line["detections"] for line in map(json.loads, lines)}
    print("| logo in the scenes | scenes | logo found, 95 % interval | also another logo |")
    print("|---|---|---|---|")
    for name in LOGOS:
        of_logo = [found[file] for file, label in labels.items() if label == name]
        hits = sum(any(one["label"] == name for one in detections) for detections in of_logo)
        others = sum(any(one["label"] != name for one in detections) for detections in of_logo)
        print(f"| {name} | {len(of_logo)} | {percentages(hits, len(of_logo))} | {others} |")
    empty = [found[file] for file, label in labels.items() if label == "none"]
    alarms = sum(bool(detections) for detections in empty)
    print(f"| none | {len(empty)} | false alarms: {percentages(alarms, len(empty))} | |")

    hits = [file for file, label in labels.items() if [one["label"] for one in found[file]] == [label]]
    mistakes = [file for file, label in labels.items() if {one["label"] for one in found[file]} != {label} - {"none"}]
    for name, files in (("hits", hits), ("mistakes", mistakes)):
        random.Random(args.seed).shuffle(files)
        sheet(args.output / "annotated", files[: 3 * COLUMNS]).save(args.output / f"{name}.jpg", quality=80)


def percentages(count, total):
    """Returns a share and its 95 % Wilson interval, in percent."""
    z, share = 1.96, count / total
    middle = share + z * z / (2 * total)
    reach = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    low, high = ((middle + sign * reach) / (1 + z * z / total) for sign in (-1, 1))
    return f"{share:.0%} ({max(low, 0):.0%} to {min(high, 1):.0%})"


def sheet(folder, files):
    """Returns a sheet of the annotated copies of scenes."""
    rows = max(math.ceil(len(files) / COLUMNS), 1)
    image = Image.new("RGB", (COLUMNS * TILE[0], rows * TILE[1]), "white")
    for index, file in enumerate(files):
        (copy,) = folder.rglob(f"{Path(file).stem}.*")
        with Image.open(copy) as tile:
            tile.thumbnail((TILE[0] - 6, TILE[1] - 6))
            image.paste(tile, (index % COLUMNS * TILE[0] + 3, index // COLUMNS * TILE[1] + 3))
    return image


if __name__ == "__main__":
    main()
