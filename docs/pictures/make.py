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
import base64
import contextlib
import io
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

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "Tests/BrowserTests/Fixtures"), str(ROOT / "Benchmarks/accuracy")]

import drawn_scenes  # noqa: E402
from browser import Browser  # noqa: E402

BYTE_LIMIT = 150_000  # of a picture
TOTAL_LIMIT = 2_000_000  # of all pictures together
WIDTH = 1000  # of a picture of a page, in pixels


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


def studio(run):
    """The studio with a classification of the camera image."""
    run.classifier()
    image = Image.open(run.test_photos() / STUDIO_PHOTO).convert("RGB")
    with run.studio(run.classifier(), height=760, camera=camera(run, image)) as browser:
        label = STUDIO_PHOTO.split("-")[0]
        browser.wait_until(f"document.getElementById('label').textContent === '{label}' && document.body.dataset.source === 'live'")
        settle(browser, 2)
        save(shot(browser, bottom="#filter-area", margin=10), "studio.jpg")


def studio_detections(run):
    """The studio with the objects of a detector."""
    run.object_detector()
    image = Image.open(run.boxes("test-tables", 60) / f"{DETECTION_PHOTO}.jpg").convert("RGB")
    with run.studio(run.object_detector(), height=820, camera=camera(run, image)) as browser:
        browser.wait_until("document.querySelectorAll('#objects li').length > 2 && document.body.dataset.source === 'live'")
        settle(browser, 2)
        save(shot(browser, bottom="#objects", margin=10), "studio-detections.jpg")


def studio_training(run):
    """The studio with a model that is trained on the examples of three classes."""
    folder = run.examples()
    with run.studio(height=1120) as browser:
        for number, label in enumerate(STUDIO_CLASSES, 1):
            browser.press("#class-name", None)
            browser.execute({"type": label}, {})
            browser.key("Enter", None, False, False)
            browser.wait_until(f"document.querySelector('#classes > li:nth-child({number})')?.innerText.includes('{label}')")
            for index in range(1, EXAMPLE_COUNT + 1):
                choose(browser, folder / f"{label}-{index:02}.jpg")
                browser.press(f"#classes > li:nth-child({number}) .hold", None)
                browser.wait_until(f"parseInt(document.querySelector('#classes > li:nth-child({number}) .count').textContent) === {index}")
        choose(browser, folder / f"{label}-{EXAMPLE_COUNT + 1:02}.jpg")
        browser.press("#start", None)
        browser.wait_until("document.getElementById('training-status').dataset.stage === 'learned'")
        browser.wait_until(f"document.getElementById('label').textContent === '{label}'")
        settle(browser, 1.5)
        save(shot(browser, bottom="#curves"), "studio-training.jpg")


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


def box_editor(run):
    """The editor of boxes in the studio."""
    folder = run.boxes("test-tables", 60)
    shutil.rmtree(run.folder / "studio-boxes", ignore_errors=True)
    with run.studio(run.object_detector(), "--boxes", "studio-boxes", width=890, height=1200) as browser:
        browser.press("#tab-annotate", None)
        for number, name in enumerate(EDITOR_PHOTOS, 1):
            choose(browser, folder / f"{name}.jpg", "#box-files")
            browser.wait_until(f"document.querySelectorAll('#box-photos li').length === {number}")
            browser.wait_until(f"document.getElementById('editor-title').textContent.startsWith('Photo {number} ')")
            browser.press("#box-detect", None)
            browser.wait_until("document.querySelectorAll('#box-list li').length > 1")
            browser.wait_until("document.getElementById('editor-state').textContent.startsWith('Saved')")
        browser.press("#box-photos li:first-child button", None)
        browser.wait_until("document.getElementById('editor-title').textContent.startsWith('Photo 1 ')")
        browser.evaluate("document.querySelector('#paper .box').focus()")
        settle(browser, 1)
        save(shot(browser, top="#box-photos", bottom="#editor-state", margin=2), "box-editor.jpg")


def studio_logo(run):
    """The search for a logo in photos, from its artwork only."""
    run.logos()
    scenes = [run.logo_scenes() / f"{name}.png" for name in SEARCHED_SCENES]
    with run.studio(height=1400) as browser:
        browser.press("#tab-logo", None)
        browser.execute({"choose": "#logo-files", "paths": [str(run.folder / "logos/leaf.png")]}, {})
        browser.wait_until("document.getElementById('model').textContent === 'Matching of the artwork'")
        browser.execute({"choose": "#logo-trials", "paths": [str(file) for file in scenes]}, {})
        browser.wait_until("document.getElementById('logo-trial-state').textContent.startsWith('Searched')")
        choose(browser, scenes[0])
        browser.wait_until("document.getElementById('label').textContent === 'leaf'")
        settle(browser, 2)
        save(shot(browser, bottom="#logo-results", margin=10), "studio-logo.jpg")


def studio_photos(run):
    """The audit of a folder of photos."""
    folder = run.checked_photos()
    with run.studio(height=1400) as browser:
        browser.press("#tab-photos", None)
        browser.execute({"choose": "#photos-folder", "paths": [str(folder)]}, {})
        browser.wait_until("document.getElementById('audit-state').textContent.includes('finding')")
        browser.wait_until("document.querySelector('#audit-groups details').open")
        browser.wait_until("[...document.querySelectorAll('#audit-groups details[open] img')].every(one => one.naturalWidth > 0)")
        choose(browser, run.test_photos() / STUDIO_PHOTO)
        settle(browser, 1)
        save(shot(browser, bottom="#photos-run", margin=10), "studio-photos.jpg")


PICTURES = {
    "studio": studio, "studio-detections": studio_detections, "studio-training": studio_training, "report": report,
    "report-mistakes": report_mistakes, "compositing": contact_sheet, "two-circles": two_circles, "detect": detect, "live": live,
    "box-editor": box_editor, "studio-logo": studio_logo, "studio-photos": studio_photos}
# The content of the pictures.
STUDIO_PHOTO = "Pear-13.jpg"
STUDIO_CLASSES = ["Apple", "Lemon", "Plum"]
EXAMPLE_COUNT = 8
DETECTION_PHOTO = "table-058"
EDITOR_PHOTOS = ["table-030", "table-017", "table-048", "table-038"]
SHEET_SEED = 5
SEARCHED_SCENES = ["scene-01", "scene-02", "scene-03", "scene-04"]
CHECKED_COUNT = 30

# Tools ------------------------------------------------------------------------------------------------------------------


def camera(run, image):
    """Returns a file of camera frames that all show one image."""
    frame = io.BytesIO()
    image.save(frame, "JPEG", quality=92)
    file = run.folder / "camera.mjpeg"
    file.write_bytes(frame.getvalue() * 30)
    return file


def choose(browser, file, selector="#file"):
    """Chooses a photo in a file input of the page."""
    browser.execute({"choose": selector, "paths": [str(file)]}, {})
    if selector == "#file":
        browser.wait_until("document.getElementById('photo').complete && document.body.dataset.source === 'photo'")


def settle(browser, seconds):
    """Waits until the latest result is shown."""
    browser.wait_until(
        f"performance.now() > window.settled + {seconds * 1000} || (window.settled ??= performance.now(), false)")


def shot(browser, top=None, bottom=None, margin=24):
    """Returns an image of the page from the element `top`, or the top of the page, to the element `bottom`, with the full width."""
    clip = browser.evaluate(f"""(() => {{
        document.activeElement?.matches('button, a') && document.activeElement.blur();
        scrollTo(0, 0);
        const edge = (selector, side) => document.querySelector(selector).getBoundingClientRect()[side];
        const top = {f"edge({json.dumps(top)}, 'top') - {margin}" if top else "0"};
        const bottom = edge({json.dumps(bottom)}, 'bottom') + {margin};
        return {{ x: 0, y: top, width: document.documentElement.clientWidth, height: bottom - top, scale: 1 }};
    }})()""")
    data = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
    if problems := browser.problems():
        sys.exit(f"The page reports {problems}")
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def sheet(folder, columns=3, rows=3, tile=(330, 248)):
    """Returns a sheet of the first annotated scenes of 640 x 480 pixels."""
    image = Image.new("RGB", (columns * tile[0] + 5 * (columns - 1), rows * tile[1] + 5 * (rows - 1)), "white")
    scenes = [file for file in sorted(folder.iterdir()) if Image.open(file).size == (640, 480)]
    for index, file in enumerate(scenes[: columns * rows]):
        with Image.open(file) as part:
            image.paste(part.resize(tile, Image.Resampling.LANCZOS), (index % columns * (tile[0] + 5), index // columns * (tile[1] + 5)))
    return image


def save(image, name):
    """Writes a picture beside this file: a JPEG with the highest quality that the limit allows, or a PNG with a palette."""
    image = image.convert("RGB")
    if image.width > WIDTH:
        image = image.resize((WIDTH, round(image.height * WIDTH / image.width)), Image.Resampling.LANCZOS)
    file = HERE / name
    if file.suffix == ".png":
        image.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, optimize=True)
    else:
        for quality in range(90, 59, -3):
            image.save(file, quality=quality, optimize=True, progressive=True)
            if file.stat().st_size <= BYTE_LIMIT:
                break
    size = file.stat().st_size
    print(f"{name}: {image.width} x {image.height} pixels, {size / 1000:.0f} kB", flush=True)
    if size > BYTE_LIMIT:
        sys.exit(f"{name} has more than {BYTE_LIMIT / 1000:.0f} kB. Make it smaller or save it as JPEG.")


if __name__ == "__main__":
    main()
