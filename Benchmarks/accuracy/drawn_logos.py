"""Measures how well logo detectors that are trained from artwork find logos that were not used in the development of Imprint.

    python3 Benchmarks/accuracy/drawn_logos.py OUTPUT [--imprint .build/release/imprint] [--logos letter,leaf,crest] [--together] [--seed 1] \\
        [--train 300] [--test 300] [--only-draw] [-- OPTIONS OF imprint train-detector]

Draws the artwork of three logos, training scenes without a logo (label Other), and test scenes: half of them show the logo, a quarter show
no logo, and a quarter show a hard negative: another logo, a plain shape or a word. Trains with
`imprint train-detector --photos OUTPUT/LOGO/train --artwork Mark=OUTPUT/LOGO/mark.png`, so no training scene shows the logo, and prints a
Markdown table.
With --together, one detector is trained for all logos; the half of the test scenes with a logo show them in turn, and the folder is OUTPUT/together.
OUTPUT/LOGO/sheet.jpg shows scenes, OUTPUT/LOGO/mistakes.jpg the misclassified scenes. Requires Pillow.
"""

import argparse
import random
from pathlib import Path

from PIL import Image

from drawn_scenes import LOGOS, artwork, scene, shape, word
from folds import parse_arguments, run_json


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--logos", "--marks", type=lambda text: text.split(","), default=list(LOGOS))
    parser.add_argument("--together", action="store_true", help="train one detector for all logos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train", type=int, default=300, help="the number of training scenes")
    parser.add_argument("--test", type=int, default=300, help="the number of test scenes")
    parser.add_argument("--only-draw", action="store_true", help="draw, but do not train")
    args, options = parse_arguments(parser)

    print("| logo | scenes | accuracy, 95 % interval | AUC | logo | no logo | hard negative | training |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    runs = {"together": {name: name for name in args.logos}} if args.together else {name: {"Mark": name} for name in args.logos}
    for name, logos in runs.items():
        folder = args.output / name
        draw(name, logos, folder, args)
        if args.only_draw:
            continue
        model = str(folder / "mark.imprint")
        artwork_options = [option for label in logos for option in ("--artwork", f"{label}={folder / label.lower()}.png")]
        finished = run_json(
            args.imprint, "train-detector", "--photos", str(folder / "train"), *artwork_options, "--output", model, "--seed", str(args.seed),
            "--json", *options)[-1]
        *images, evaluation = run_json(args.imprint, "evaluate", model, str(folder / "test"), "--images", "--json")
        correct = {}
        for image in images:
            correct.setdefault(Path(image["file"]).name.split("-")[0], []).append(image["correct"])
        accuracies = " | ".join(f"{sum(correct[kind]) / len(correct[kind]):.1%}" for kind in ("mark", "nothing", "like"))
        low, high = evaluation["accuracyInterval"]
        auc = f"{evaluation['auc']:.3f}" if "auc" in evaluation else "–"
        print(
            f"| {name} | {evaluation['images']} | {evaluation['accuracy']:.1%} ({low:.1%} to {high:.1%}) | {auc} | "
            f"{accuracies} | {finished['seconds']:.0f} s |", flush=True)
        contact_sheet([image["file"] for image in images if not image["correct"]], folder / "mistakes.jpg")


def draw(name, logos, folder, args):
    """Draws the artwork and the scenes of logos by label; each scene depends only on the seed, the name of the run, and its number."""
    for part in ("train/Other", "test/Other", *(f"test/{label}" for label in logos)):
        (folder / part).mkdir(parents=True, exist_ok=True)
    layers = {label: LOGOS[logo]() for label, logo in logos.items()}
    for label in logos:
        artwork(layers[label]).save(folder / f"{label.lower()}.png")
    others = [LOGOS[other]() for other in LOGOS if other not in logos.values()]
    files = []
    for number in range(args.train):
        generator = random.Random(f"{args.seed} {name} train {number}")
        save(generator, scene(generator), folder / f"train/Other/{number:04}.jpg")
    for number in range(args.test):
        generator = random.Random(f"{args.seed} {name} test {number}")
        if number % 2 == 0:
            logo = list(logos)[number // 2 % len(logos)]
            content, label = layers[logo], f"{logo}/mark"
        elif number % 4 == 1:
            content, label = None, "Other/nothing"
        else:
            content, label = generator.choice([*others, shape(generator), word(generator)]), "Other/like"
        files.append(folder / f"test/{label}-{number:04}.jpg")
        save(generator, scene(generator, content), files[-1])
    contact_sheet(files[:40], folder / "sheet.jpg")


def save(generator, image, file):
    image.save(file, quality=generator.randint(50, 95))


def contact_sheet(files, target, columns=8, side=240):
    """Writes a contact sheet of up to 80 images."""
    files = files[:80]
    sheet = Image.new("RGB", (columns * side, max(-(-len(files) // columns), 1) * side), "white")
    for index, file in enumerate(files):
        thumbnail = Image.open(file)
        thumbnail.thumbnail((side - 6, side - 6))
        sheet.paste(thumbnail, (index % columns * side, index // columns * side))
    sheet.save(target)


if __name__ == "__main__":
    main()
