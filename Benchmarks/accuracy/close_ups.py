"""Measures whether a logo detector finds logos that fill a large part of a photo.

    python3 Benchmarks/accuracy/close_ups.py DETECTOR LABEL=ARTWORK.png BACKGROUNDS [--imprint .build/release/imprint] [--count 20] \\
        [--levels 96,152,240,384,608]

Pastes the artwork, an image with transparency, onto random images of the folder BACKGROUNDS, at 50 to 100 % of the shorter side and at a random
position, in the aspect ratios 1:1, 4:3, 3:4 and 16:9. Prints a Markdown table: the share of the --count scenes of each size in which the detector
finds the logo. With --levels, the detector scans other pyramid levels. Requires Pillow.
"""

import argparse
import random
import tempfile
from pathlib import Path

from PIL import Image

from comparison import numbers
from folds import run_json
from pyramid_levels import change_levels

SIZES = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
SHAPES = {"1:1": (600, 600), "4:3": (800, 600), "3:4": (600, 800), "16:9": (1066, 600)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("detector", type=Path)
    parser.add_argument("artwork", metavar="LABEL=ARTWORK.png")
    parser.add_argument("backgrounds", type=Path)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--count", type=int, default=20, help="the number of scenes of each size and aspect ratio")
    parser.add_argument("--levels", type=numbers, help="the sides of the pyramid levels, in pixels (default: those of the detector)")
    args = parser.parse_args()

    label, file = args.artwork.split("=", 1)
    artwork = Image.open(file).convert("RGBA")
    backgrounds = sorted(path for path in args.backgrounds.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if not backgrounds:
        parser.error(f"{args.backgrounds} has no JPEG or PNG images.")
    generator = random.Random(1)
    print(f"| aspect ratio | {' | '.join(f'{size:.0%}' for size in SIZES)} |")
    print("|---|" + "---|" * len(SIZES))
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "detector.imprint"
        change_levels(args.detector, args.levels, model)
        for shape, (width, height) in SHAPES.items():
            shares = []
            for size in SIZES:
                scenes = [Path(folder) / f"{index}.png" for index in range(args.count)]
                for scene in scenes:
                    draw(artwork, generator.choice(backgrounds), width, height, size, generator).save(scene)
                results = run_json(args.imprint, "detect", str(model), "--json", *map(str, scenes))
                found = [any(object["label"] == label for object in result["detections"]) for result in results]
                shares.append(f"{sum(found) / len(found):.0%}")
            print(f"| {shape} | {' | '.join(shares)} |", flush=True)


def draw(artwork, background, width, height, size, generator):
    """Returns a scene whose logo has a longer side of `size` times the shorter side of the scene."""
    scene = Image.open(background).convert("RGB").resize((width, height))
    scale = size * min(width, height) / max(artwork.size)
    logo = artwork.resize((max(1, int(artwork.width * scale)), max(1, int(artwork.height * scale))))
    scene.paste(logo, (generator.randint(0, width - logo.width), generator.randint(0, height - logo.height)), logo)
    return scene


if __name__ == "__main__":
    main()
