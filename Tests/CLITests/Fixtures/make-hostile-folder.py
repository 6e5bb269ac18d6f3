"""Makes a folder of two labels with GOOD pictures of many kinds and BAD files of many kinds.

    python3 make-hostile-folder.py FOLDER GOOD BAD

Prints a JSON object: the name of every bad file and what is wrong with it.
"""

import io
import json
import pathlib
import random
import struct
import sys
import zlib

import numpy
from PIL import Image

folder, good, bad = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(1)
numbers = numpy.random.default_rng(1)


def picture(label, size=(40, 32)):
    brightness = 40 if label == "dark" else 180
    samples = numbers.integers(brightness, brightness + 60, (size[1], size[0], 3))
    return Image.fromarray(samples.astype("uint8"))


def encoded(image, form, **options):
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


GOOD = [
    lambda image: ("jpg", encoded(image, "JPEG")),
    lambda image: ("jpg", encoded(image, "JPEG", progressive=True)),
    lambda image: ("jpg", encoded(image.convert("L"), "JPEG")),
    lambda image: ("jpg", encoded(image.convert("CMYK"), "JPEG")),
    lambda image: ("png", encoded(image, "PNG")),
    lambda image: ("png", encoded(image.convert("P"), "PNG")),
    lambda image: ("png", encoded(image.convert("RGBA"), "PNG")),
    lambda image: ("webp", encoded(image, "WEBP")),
    lambda image: ("webp", encoded(image, "WEBP", lossless=True)),
    lambda image: ("jpg", encoded(image, "PNG")),  # a wrong name
]


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_of_size(width, height):
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
            + chunk(b"IEND", b""))


def jpeg_of_size(image, width, height):
    content = bytearray(encoded(image, "JPEG"))
    frame = content.index(b"\xff\xc0")
    content[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(content)


def cut(content, share):
    return content[: max(8, int(len(content) * share))]


BAD = {
    "empty": lambda image: ("jpg", b""),
    "text": lambda image: ("jpg", b"no picture at all\n"),
    "a page": lambda image: ("jpg", b"<!doctype html><html><body>404</body></html>"),
    "noise": lambda image: ("png", bytes(draw.randrange(256) for _ in range(500))),
    "zeros": lambda image: ("jpg", bytes(4096)),
    "half a JPEG": lambda image: ("jpg", cut(encoded(image, "JPEG"), 0.5)),
    "the head of a JPEG": lambda image: ("jpg", encoded(image, "JPEG")[:24]),
    "a JPEG's mark alone": lambda image: ("jpg", b"\xff\xd8\xff"),
    "half a PNG": lambda image: ("png", cut(encoded(image, "PNG"), 0.5)),
    "a PNG without its end": lambda image: ("png", encoded(image, "PNG")[:-12]),
    "half a WebP": lambda image: ("webp", cut(encoded(image, "WEBP"), 0.5)),
    "half a lossless WebP": lambda image: ("webp", cut(encoded(image, "WEBP", lossless=True), 0.5)),
    "a PNG of 100,000 x 100,000": lambda image: ("png", png_of_size(100_000, 100_000)),
    "a PNG of no size": lambda image: ("png", png_of_size(0, 10)),
    "a JPEG of 65,000 x 65,000": lambda image: ("jpg", jpeg_of_size(image, 65_000, 65_000)),
    "a JPEG of no size": lambda image: ("jpg", jpeg_of_size(image, 0, 0)),
    "a GIF": lambda image: ("gif", encoded(image, "GIF")),
    "a TIFF": lambda image: ("tif", encoded(image, "TIFF")),
    "half a HEIC": lambda image: ("heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(40)),
    "nothing but a signature": lambda image: ("png", b"\x89PNG\r\n\x1a\n"),
}

wrong = {}
for number in range(good + bad):
    label = ["bright", "dark"][number % 2]
    place = folder / label
    place.mkdir(parents=True, exist_ok=True)
    image = picture(label)
    if number < good:
        extension, content = GOOD[number // 2 % len(GOOD)](image)
        (place / f"good {number}.{extension}").write_bytes(content)
    else:
        kind = list(BAD)[(number - good) // 2 % len(BAD)]
        extension, content = BAD[kind](image)
        name = f"bad {number}.{extension}"
        (place / name).write_bytes(content)
        wrong[f"{label}/{name}"] = kind
print(json.dumps(wrong))
