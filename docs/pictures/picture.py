"""Captures pages and saves pictures within the limits."""

import base64
import io
import json
import sys
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
BYTE_LIMIT = 150_000  # of a picture
WIDTH = 1000  # of a picture of a page, in pixels


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
