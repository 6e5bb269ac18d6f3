"""Writes pillow-vectors.json: small image files with the pixels that Pillow decodes from them, and resized images.

    apt-get install libturbojpeg0 libjpeg-turbo-progs
    pip install pillow==13.0.0 && python make-pillow-vectors.py
"""

import base64
import ctypes
import ctypes.util
import io
import json
import pathlib
import random
import subprocess

import PIL
from PIL import Image

SIZE = (19, 13)


def text(data):
    return base64.b64encode(bytes(data)).decode()


def smooth_photo(mode):
    """Returns an image without sharp edges, which JPEG hardly changes."""
    channels = len(Image.new(mode, (1, 1)).getbands())
    image = Image.new(mode, SIZE)
    for y in range(SIZE[1]):
        for x in range(SIZE[0]):
            pixel = [40 + 8 * x, 220 - 9 * y, 60 + 5 * x + 4 * y, 20 + 6 * y][:channels]
            image.putpixel((x, y), tuple(pixel) if channels > 1 else pixel[0])
    return image


def encoded(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def ycck(image):
    """Returns a YCCK JPEG with inverted pixels; Pillow cannot write one, so libturbojpeg encodes the CMYK pixels."""
    turbo = ctypes.CDLL(ctypes.util.find_library("turbojpeg"))
    turbo.tjInitCompress.restype = ctypes.c_void_p
    pixels = bytes(255 - value for value in image.tobytes())
    output, size = ctypes.c_void_p(), ctypes.c_ulong()
    cmyk_format, full_colour = 11, 0
    assert turbo.tjCompress2(
        ctypes.c_void_p(turbo.tjInitCompress()), pixels, image.width, 0, image.height, cmyk_format,
        ctypes.byref(output), ctypes.byref(size), full_colour, 95, 0) == 0  # fmt: skip
    return ctypes.string_at(output, size.value)


def rarely_subsampled(image):
    """Returns a JPEG whose chroma has a third of the resolution, which Pillow cannot write."""
    command = ["cjpeg", "-quality", "95", "-sample", "3x1"]
    return subprocess.run(command, input=encoded(image, format="PPM"), capture_output=True, check=True).stdout


def files():
    cmyk = smooth_photo("CMYK")
    yield "baseline.jpg", encoded(smooth_photo("RGB"), format="JPEG", quality=95, subsampling=0)
    yield "progressive-420.jpg", encoded(smooth_photo("RGB"), format="JPEG", quality=95, progressive=True)
    yield "subsampled-3x1.jpg", rarely_subsampled(smooth_photo("RGB"))
    yield "grey.jpg", encoded(smooth_photo("L"), format="JPEG", quality=95)
    yield "cmyk.jpg", encoded(cmyk, format="JPEG", quality=95)
    yield "ycck.jpg", ycck(cmyk)


def resizes(source, sizes):
    def scale_fill(width, height):
        return source.resize((width, height), Image.Resampling.BILINEAR)

    def center_crop(width, height):
        scale = max(width / source.width, height / source.height)
        w, h = width / scale, height / scale
        x, y = (source.width - w) / 2, (source.height - h) / 2
        return source.resize((width, height), Image.Resampling.BILINEAR, box=(x, y, x + w, y + h))

    def scale_fit(width, height):
        scale = min(width / source.width, height / source.height)
        size = [max(int(side * scale + 0.5), 1) for side in source.size]
        fitted = Image.new("RGB", (width, height))
        fitted.paste(scale_fill(*size), ((width - size[0]) // 2, (height - size[1]) // 2))
        return fitted

    for rule, resize in (("scale-fill", scale_fill), ("center-crop", center_crop), ("scale-fit", scale_fit)):
        for width, height in sizes:
            yield {"rule": rule, "width": width, "height": height, "rgb": text(resize(width, height).tobytes())}


def rings():
    """Returns an image of rings that become finer outwards, so that scaling down without a filter shows aliasing."""
    image = Image.new("RGB", (160, 120))
    for y in range(120):
        for x in range(160):
            square = (x - 80) ** 2 + (y - 60) ** 2
            image.putpixel((x, y), tuple(255 if square // step % 2 else 0 for step in (300, 500, 800)))
    return image


source = Image.frombytes("RGB", SIZE, random.Random(1).randbytes(SIZE[0] * SIZE[1] * 3))
vectors = {
    "pillow": PIL.__version__,
    "width": SIZE[0],
    "height": SIZE[1],
    "files": [
        {"name": name, "file": text(data), "rgb": text(Image.open(io.BytesIO(data)).convert("RGB").tobytes())}
        for name, data in files()
    ],
    "source": text(source.tobytes()),
    "resizes": list(resizes(source, ((7, 7), (19, 13), (5, 11), (30, 24), (1, 1), (25, 3)))),
    "rings": list(resizes(rings(), ((40, 40), (60, 24)))),
}
target = pathlib.Path(__file__).with_name("pillow-vectors.json")
target.write_text(json.dumps(vectors, indent=1) + "\n")
