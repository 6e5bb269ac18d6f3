"""Makes the pictures of the documentation from real runs of Imprint.

    ./run pictures [--only NAME,…]

or, with an existing program,

    python3 docs/pictures/make.py [--imprint .build/release/imprint] [--work .build-pictures] [--threads N] [--only NAME,…]

Draws photos of fruit (fruit.py) and scenes with logos (Benchmarks/accuracy/drawn_scenes.py), trains a classifier and two detectors, opens
the pages of Imprint in Chromium, and writes the pictures beside this file. --only makes some of the pictures, such as studio,report.
The data and the models stay in the folder --work, and later runs use them again; delete the folder to start from scratch. Needs Pillow,
websocket-client and Chromium.
"""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

from fruit import FRUIT, SCALE, photo, scene, table
from picture import save, shot
from studio_pictures import (
    CHECKED_COUNT, EXAMPLE_COUNT, STUDIO_CLASSES, box_editor, studio, studio_detections, studio_logo, studio_photos, studio_training)

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "Tests/BrowserTests/Fixtures"), str(ROOT / "Benchmarks/accuracy")]

import drawn_scenes  # noqa: E402
from browser import Browser  # noqa: E402

TOTAL_LIMIT = 2_000_000  # of all pictures together, in bytes
SHEET_SEED = 5  # of the contact sheet of composites


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--work", type=Path, default=Path(".build-pictures"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PICTURES), metavar="NAME,…", help=", ".join(PICTURES))
    args = parser.parse_args()
    if unknown := set(args.only) - set(PICTURES):
        parser.error(f"unknown pictures: {', '.join(sorted(unknown))}. The pictures are {', '.join(PICTURES)}.")
    run = Run(args)
    for name in args.only:
        PICTURES[name](run)
    files = [file for file in HERE.iterdir() if file.suffix in (".png", ".jpg")]
    total = sum(file.stat().st_size for file in files)
    print(f"{len(files)} pictures, {total / 1000:.0f} kB")
    if total > TOTAL_LIMIT:
        sys.exit(f"The pictures have more than {TOTAL_LIMIT / 1000:.0f} kB together. Lower the quality of some of them.")


class Run:
    """The working folder with the data and the models, which are made when they are first needed."""

    def __init__(self, args):
        self.program = str(Path(args.imprint).resolve())
        self.threads = str(args.threads)
        self.folder = args.work.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        # Base models that the user has installed would change the results.
        self.environment = {**os.environ, "IMPRINT_HOME": str(self.folder / "home")}

    def imprint(self, *arguments):
        """Runs `imprint` in the working folder."""
        arguments = [*map(str, arguments), "--threads", self.threads]
        print("imprint", *arguments, flush=True)
        subprocess.run([self.program, *arguments], cwd=self.folder, env=self.environment, check=True, stdout=subprocess.DEVNULL)

    @contextlib.contextmanager
    def process(self, *arguments, stream):
        """Runs `imprint` during a `with` block, whose value are the lines of an output stream."""
        arguments = [*map(str, arguments), "--threads", self.threads]
        print("imprint", *arguments, flush=True)
        process = subprocess.Popen(
            [self.program, *arguments], cwd=self.folder, env=self.environment, text=True,
            **{"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: subprocess.PIPE})
        try:
            yield process, getattr(process, stream)
        finally:
            process.terminate()
            process.wait()

    @contextlib.contextmanager
    def studio(self, *arguments, height, width=1280, camera=None):
        """Opens the studio in a browser during a `with` block, whose value is the browser."""
        with self.process("studio", *arguments, "--json", stream="stdout") as (_, lines):
            url = json.loads(next(lines))["url"]
            with self.page(url, width, height, camera) as browser:
                browser.wait_until("document.body.dataset.ready === 'true'")
                yield browser

    @contextlib.contextmanager
    def page(self, url, width, height, camera=None):
        """Opens a page in a browser during a `with` block, whose value is the browser."""
        with Browser(600, camera) as browser:
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2, mobile=False)
            # Without animations, a picture does not depend on the time.
            browser.call("Emulation.setEmulatedMedia", features=[
                {"name": "prefers-color-scheme", "value": "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}])
            browser.open(url)
            yield browser

    # Data and models ----------------------------------------------------------------------------------------------------

    def made(self, name, make):
        """Returns a file or folder of the working folder, after making it if it is missing."""
        path = self.folder / name
        if not path.exists():
            unfinished = path.with_name(f"unfinished-{path.name}")
            shutil.rmtree(unfinished, ignore_errors=True)
            make(unfinished)
            unfinished.rename(path)
        return path

    def photos(self):
        """Photos of one fruit each, in a folder per label."""

        def draw(folder):
            for label in FRUIT:
                (folder / label).mkdir(parents=True)
                for index in range(80):
                    photo(random.Random(f"{label} {index}"), label).save(folder / label / f"{index + 1:03}.jpg", quality=92)

        return self.made("fruit", draw)

    def test_photos(self, size=(640, 480)):
        """Larger photos of one fruit each, which are not training photos."""

        def draw(folder):
            folder.mkdir()
            for label in FRUIT:
                for index in range(16):
                    photo(random.Random(f"test {label} {index}"), label, size, reach=(0.26, 0.4)).save(folder / f"{label}-{index + 1:02}.jpg", quality=92)

        return self.made("test-photos", draw)

    def examples(self):
        """Photos of one fruit each on the same table, as a user of the studio takes them."""

        def draw(folder):
            folder.mkdir()
            size = 640, 480
            background = table(random.Random("examples 2"), (size[0] * SCALE, size[1] * SCALE))
            for label in STUDIO_CLASSES:
                for index in range(EXAMPLE_COUNT + 1):
                    image = photo(random.Random(f"example {label} {index}"), label, size, (0.26, 0.34), dishes=0, background=background)
                    image.save(folder / f"{label}-{index + 1:02}.jpg", quality=92)

        return self.made("examples", draw)

    def boxes(self, name, count):
        """Scenes with several fruits, and their boxes in COCO format."""

        def draw(folder):
            folder.mkdir()
            images, annotations, categories = [], [], {label: number for number, label in enumerate(FRUIT, 1)}
            for number in range(count):
                generator = random.Random(f"{name} {number}")
                image, objects = scene(generator, generator.randint(2, 7))
                images.append({"id": number + 1, "file_name": f"table-{number + 1:03}.jpg", "width": image.width, "height": image.height})
                image.save(folder / images[-1]["file_name"], quality=92)
                for label, (left, top, right, bottom) in objects:
                    annotations.append({
                        "id": len(annotations) + 1, "image_id": number + 1, "category_id": categories[label], "iscrowd": 0,
                        "bbox": [left, top, right - left, bottom - top], "area": (right - left) * (bottom - top)})
            (folder / "boxes.json").write_text(json.dumps({
                "images": images, "annotations": annotations,
                "categories": [{"id": number, "name": label} for label, number in categories.items()]}))

        return self.made(name, draw)

    def logos(self):
        """The artwork of three logos."""

        def draw(folder):
            folder.mkdir()
            for name, layers in drawn_scenes.LOGOS.items():
                drawn_scenes.artwork(layers()).save(folder / f"{name}.png")

        self.made("logos", draw)
        return [option for name in drawn_scenes.LOGOS for option in ("--artwork", f"{name}=logos/{name}.png")]

    def logo_scenes(self):
        """Scenes with several logos."""

        def draw(folder):
            folder.mkdir()
            logos = {name: layers() for name, layers in drawn_scenes.LOGOS.items()}
            for number in range(48):
                generator = random.Random(f"logo scene {number}")
                image, _ = drawn_scenes.scene_of_several(generator, logos, 2 + number % 3)
                image.save(folder / f"scene-{number + 1:02}.png")

        return self.made("scenes", draw)

    def checked_photos(self):
        """A folder of photos for an audit: one photo has two labels, and one has a copy."""
        photos = self.photos()

        def draw(folder):
            for label in STUDIO_CLASSES:
                (folder / label).mkdir(parents=True)
                for file in sorted((photos / label).iterdir())[:CHECKED_COUNT]:
                    shutil.copy(file, folder / label)
            apple, lemon, plum = STUDIO_CLASSES
            Image.open(photos / apple / "001.jpg").save(folder / lemon / "IMG_2041.jpg", quality=70)
            shutil.copy(photos / plum / "002.jpg", folder / plum / "002 copy.jpg")

        return self.made("checked", draw)

    def classifier(self):
        """A classifier of fruit, and the report of its training."""
        if not (self.folder / "fruit.imprint").exists():
            self.photos()
            self.imprint(*CLASSIFIER, "--output", "fruit.imprint", "--report", "report.html")
        return "fruit.imprint"

    def object_detector(self):
        """A detector of fruit that is trained from boxes."""
        if not (self.folder / "table.imprint").exists():
            self.boxes("tables", 160)
            self.imprint("train-detector", "--annotations", "tables/boxes.json", "--output", "table.imprint", "--epochs", 4, "--seed", 1)
        return "table.imprint"

    def logo_detector(self):
        """A detector of three logos that is trained from their artwork only."""
        if not (self.folder / "logos.imprint").exists():
            self.imprint("train-detector", *self.logos(), "--output", "logos.imprint")
        return "logos.imprint"


CLASSIFIER = ["train", "fruit", "--network", "logonet", "--input-size", 64, "--epochs", 14, "--augment", "flip,rotate,exposure,blur",
              "--validation", 0.2, "--seed", 1]

# Pictures ---------------------------------------------------------------------------------------------------------------


def report(run):
    """The top of the report of a training run."""
    run.classifier()
    with run.page((run.folder / "report.html").as_uri(), 1000, 900) as browser:
        save(shot(browser, bottom="#curves"), "report.png")


def report_mistakes(run):
    """The mistakes in the report of a detector."""
    if not (run.folder / "test-report.html").exists():
        run.boxes("test-tables", 60)
        run.imprint("evaluate", run.object_detector(), "--annotations", "test-tables/boxes.json", "--report", "test-report.html")
    with run.page((run.folder / "test-report.html").as_uri(), 1000, 900) as browser:
        save(shot(browser, top="#mistakes", bottom="#mistakes .gallery figure:nth-child(6)"), "report-mistakes.jpg")


def contact_sheet(run):
    """A contact sheet of composites and hard negatives."""
    run.imprint(
        "augment", *run.logos()[2:], "--backgrounds", run.boxes("test-tables", 60).name, "--contact-sheet", "composites.png", "--count", 2,
        "--epochs", 6, "--input-size", 160, "--seed", SHEET_SEED)
    save(Image.open(run.folder / "composites.png"), "compositing.jpg")


def two_circles(run):
    """A contact sheet of a drawn data set."""
    run.made("two-circles", lambda folder: run.imprint(
        "draw", ROOT / "datasets/two-circles.json", "--output", folder, "--count", 40, "--seed", 1, "--contact-sheet", "two-circles.png"))
    save(Image.open(run.folder / "two-circles.png"), "two-circles.jpg")


def detect(run):
    """Scenes with the logos that a detector finds."""
    run.logo_detector()
    run.logo_scenes()
    run.made("annotated", lambda folder: run.imprint("detect", run.logo_detector(), "scenes", "--annotate", folder.name))
    save(sheet(run.folder / "annotated"), "detect.jpg")


def live(run):
    """The page that shows a running training."""
    run.photos()
    with run.process(*CLASSIFIER, "--output", "watched.imprint", "--watch", stream="stderr") as (_, lines):
        url = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
        with run.page(url, 1000, 800) as browser:
            browser.wait_until("document.querySelectorAll('.loss .training circle').length === 8")
            save(shot(browser, bottom="#curves"), "live.png")


def sheet(folder, columns=3, rows=3, tile=(330, 248)):
    """Returns a sheet of the first annotated scenes of 640 x 480 pixels."""
    image = Image.new("RGB", (columns * tile[0] + 5 * (columns - 1), rows * tile[1] + 5 * (rows - 1)), "white")
    scenes = [file for file in sorted(folder.iterdir()) if Image.open(file).size == (640, 480)]
    for index, file in enumerate(scenes[: columns * rows]):
        with Image.open(file) as part:
            image.paste(part.resize(tile, Image.Resampling.LANCZOS), (index % columns * (tile[0] + 5), index // columns * (tile[1] + 5)))
    return image


PICTURES = {
    "studio": studio, "studio-detections": studio_detections, "studio-training": studio_training, "report": report,
    "report-mistakes": report_mistakes, "compositing": contact_sheet, "two-circles": two_circles, "detect": detect, "live": live,
    "box-editor": box_editor, "studio-logo": studio_logo, "studio-photos": studio_photos}


if __name__ == "__main__":
    main()
