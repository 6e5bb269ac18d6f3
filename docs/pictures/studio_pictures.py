"""Makes the pictures of the studio; make.py calls these functions."""

import io
import shutil

from PIL import Image

from picture import save, shot

# The content of the pictures.
STUDIO_PHOTO = "Pear-13.jpg"
STUDIO_CLASSES = ["Apple", "Lemon", "Plum"]
EXAMPLE_COUNT = 8
DETECTION_PHOTO = "table-058"
EDITOR_PHOTOS = ["table-030", "table-017", "table-048", "table-038"]
SEARCHED_SCENES = ["scene-01", "scene-02", "scene-03", "scene-04"]
CHECKED_COUNT = 30


def studio(run):
    """The studio with a classification of the camera image."""
    run.classifier()
    image = Image.open(run.test_photos() / STUDIO_PHOTO).convert("RGB")
    with run.studio(run.classifier(), height=760, camera=camera(run, image)) as browser:
        label = STUDIO_PHOTO.split("-")[0]
        browser.wait_until(f"document.getElementById('label').textContent === '{label}' && document.body.dataset.source === 'live'")
        save_page(browser, "studio.jpg", 2, bottom="#filter-area", margin=10)


def studio_detections(run):
    """The studio with the objects of a detector."""
    run.object_detector()
    image = Image.open(run.boxes("test-tables", 60) / f"{DETECTION_PHOTO}.jpg").convert("RGB")
    with run.studio(run.object_detector(), height=820, camera=camera(run, image)) as browser:
        browser.wait_until("document.querySelectorAll('#objects li').length > 2 && document.body.dataset.source === 'live'")
        save_page(browser, "studio-detections.jpg", 2, bottom="#objects", margin=10)


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
        save_page(browser, "studio-training.jpg", 1.5, bottom="#curves")


def box_editor(run):
    """The editor of boxes in the studio."""
    folder = run.boxes("test-tables", 60)
    shutil.rmtree(run.folder / "studio-boxes", ignore_errors=True)
    with run.studio(run.object_detector(), "--boxes", "studio-boxes", width=890, height=1200) as browser:
        browser.press("#tab-annotate", None)
        for number, name in enumerate(EDITOR_PHOTOS, 1):
            choose(browser, folder / f"{name}.jpg", selector="#box-files")
            browser.wait_until(f"document.querySelectorAll('#box-photos li').length === {number}")
            browser.wait_until(f"document.getElementById('editor-title').textContent.startsWith('Photo {number} ')")
            browser.press("#box-detect", None)
            browser.wait_until("document.querySelectorAll('#box-list li').length > 1")
            browser.wait_until("document.getElementById('editor-state').textContent.startsWith('Saved')")
        browser.press("#box-photos li:first-child button", None)
        browser.wait_until("document.getElementById('editor-title').textContent.startsWith('Photo 1 ')")
        browser.evaluate("document.querySelector('#paper .box').focus()")
        save_page(browser, "box-editor.jpg", 1, top="#box-photos", bottom="#editor-state", margin=2)


def studio_logo(run):
    """The search for a logo in photos, from its artwork only."""
    run.logos()
    scenes = [run.logo_scenes() / f"{name}.png" for name in SEARCHED_SCENES]
    with run.studio(height=1400) as browser:
        browser.press("#tab-logo", None)
        choose(browser, run.folder / "logos/leaf.png", selector="#logo-files")
        browser.wait_until("document.getElementById('model').textContent === 'Matching of the artwork'")
        choose(browser, *scenes, selector="#logo-trials")
        browser.wait_until("document.getElementById('logo-trial-state').textContent.startsWith('Searched')")
        choose(browser, scenes[0])
        browser.wait_until("document.getElementById('label').textContent === 'leaf'")
        save_page(browser, "studio-logo.jpg", 2, bottom="#logo-results", margin=10)


def studio_photos(run):
    """The audit of a folder of photos."""
    folder = run.checked_photos()
    with run.studio(height=1400) as browser:
        browser.press("#tab-photos", None)
        choose(browser, folder, selector="#photos-folder")
        browser.wait_until("document.getElementById('audit-state').textContent.includes('finding')")
        browser.wait_until("document.querySelector('#audit-groups details').open")
        browser.wait_until("[...document.querySelectorAll('#audit-groups details[open] img')].every(one => one.naturalWidth > 0)")
        choose(browser, run.test_photos() / STUDIO_PHOTO)
        save_page(browser, "studio-photos.jpg", 1, bottom="#photos-run", margin=10)


def camera(run, image):
    """Returns a file of camera frames that all show one image."""
    frame = io.BytesIO()
    image.save(frame, "JPEG", quality=92)
    file = run.folder / "camera.mjpeg"
    file.write_bytes(frame.getvalue() * 30)
    return file


def choose(browser, *files, selector="#file"):
    """Chooses files or a folder in a file input of the page, by default a photo to classify."""
    browser.execute({"choose": selector, "paths": [str(file) for file in files]}, {})
    if selector == "#file":
        browser.wait_until("document.getElementById('photo').complete && document.body.dataset.source === 'photo'")


def save_page(browser, name, seconds, **edges):
    """Waits some seconds until the latest result is shown, and saves a picture of the page."""
    browser.wait_until(
        f"performance.now() > window.settled + {seconds * 1000} || (window.settled ??= performance.now(), false)")
    save(shot(browser, **edges), name)
