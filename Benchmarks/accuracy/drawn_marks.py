"""Whether a detector that is trained from a mark's artwork finds a mark that it was not tuned on.

    python3 Benchmarks/accuracy/drawn_marks.py OUTPUT [--imprint .build/release/imprint] [--marks letter,leaf,crest] [--seed 1] \\
        [--train 300] [--test 300] [--only-draw] [-- OPTIONS OF imprint train]

Draws the artwork of three marks, scenes without it to train with (label Other), and scenes to evaluate on: half of them show the mark,
a quarter nothing like it, a quarter another mark, a plain shape or a word in its place. Trains with
`imprint train OUTPUT/MARK/train --artwork Mark=OUTPUT/MARK/mark.png`, so that no scene with the mark is trained on, and prints a table
in Markdown. OUTPUT/MARK/sheet.jpg shows scenes, OUTPUT/MARK/mistakes.jpg those that the model was wrong about. Takes Pillow.
"""

import argparse
import random
from pathlib import Path

from PIL import Image

from drawn_scenes import MARKS, picture, scene, shape, word
from folds import lines, parsed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--marks", type=lambda text: text.split(","), default=list(MARKS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train", type=int, default=300, help="how many scenes to train with")
    parser.add_argument("--test", type=int, default=300, help="how many to evaluate on")
    parser.add_argument("--only-draw", action="store_true", help="draw, but do not train")
    given, options = parsed(parser)

    print("| mark | scenes | accuracy, 95 % interval | AUC | mark found | nothing there | something like it | training |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in given.marks:
        folder = given.output / name
        draw(name, folder, given)
        if given.only_draw:
            continue
        model = str(folder / "mark.imprint")
        finished = lines(
            given.imprint, "train", str(folder / "train"), "--artwork", f"Mark={folder / 'mark.png'}", "--output", model, "--seed",
            str(given.seed), "--json", *options)[-1]
        *images, found = lines(given.imprint, "evaluate", model, str(folder / "test"), "--images", "--json")
        right = {}
        for image in images:
            right.setdefault(Path(image["file"]).name.split("-")[0], []).append(image["correct"])
        shares = " | ".join(f"{sum(right[kind]) / len(right[kind]):.1%}" for kind in ("mark", "nothing", "like"))
        low, high = found["accuracyInterval"]
        print(
            f"| {name} | {found['images']} | {found['accuracy']:.1%} ({low:.1%} to {high:.1%}) | {found['auc']:.3f} | {shares} | "
            f"{finished['seconds']:.0f} s |", flush=True)
        sheet([image["file"] for image in images if not image["correct"]], folder / "mistakes.jpg")


def draw(name, folder, given):
    """The artwork of a mark and its scenes; each follows from the seed and its number."""
    for part in ("train/Other", "test/Mark", "test/Other"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    layers = MARKS[name]()
    picture(layers).save(folder / "mark.png")
    others = [MARKS[other]() for other in MARKS if other != name]
    shown = []
    for number in range(given.train):
        source = random.Random(f"{given.seed} {name} train {number}")
        save(source, scene(source), folder / f"train/Other/{number:04}.jpg")
    for number in range(given.test):
        source = random.Random(f"{given.seed} {name} test {number}")
        if number % 2 == 0:
            seen, label = layers, "Mark/mark"
        elif number % 4 == 1:
            seen, label = None, "Other/nothing"
        else:
            seen, label = source.choice([*others, shape(source), word(source)]), "Other/like"
        shown.append(folder / f"test/{label}-{number:04}.jpg")
        save(source, scene(source, seen), shown[-1])
    sheet(shown[:40], folder / "sheet.jpg")


def save(source, image, file):
    image.save(file, quality=source.randint(50, 95))


def sheet(files, target, columns=8, side=240):
    """A contact sheet."""
    files = files[:80]
    whole = Image.new("RGB", (columns * side, max(-(-len(files) // columns), 1) * side), "white")
    for place, file in enumerate(files):
        small = Image.open(file)
        small.thumbnail((side - 6, side - 6))
        whole.paste(small, (place % columns * side, place // columns * side))
    whole.save(target)


if __name__ == "__main__":
    main()
