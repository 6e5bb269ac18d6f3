"""Creates a folder of two labels with GOOD readable images and BAD unreadable files, in many formats.

    python3 make-hostile-folder.py FOLDER GOOD BAD

Prints a JSON object that maps the name of every unreadable file to its kind.
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
generator = numpy.random.default_rng(1)


def random_image(label, size=(40, 32)):
    brightness = 40 if label == "dark" else 180
    samples = generator.integers(brightness, brightness + 60, (size[1], size[0], 3))
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
    lambda image: ("jpg", encoded(image, "PNG")),  # a wrong extension
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
    "text": lambda image: ("jpg", b"not an image\n"),
    "web page": lambda image: ("jpg", b"<!doctype html><html><body>404</body></html>"),
    "noise": lambda image: ("png", bytes(draw.randrange(256) for _ in range(500))),
    "zeros": lambda image: ("jpg", bytes(4096)),
    "half of a JPEG": lambda image: ("jpg", cut(encoded(image, "JPEG"), 0.5)),
    "start of a JPEG": lambda image: ("jpg", encoded(image, "JPEG")[:24]),
    "only a JPEG marker": lambda image: ("jpg", b"\xff\xd8\xff"),
    "half of a PNG": lambda image: ("png", cut(encoded(image, "PNG"), 0.5)),
    "PNG without its last chunk": lambda image: ("png", encoded(image, "PNG")[:-12]),
    "half of a WebP": lambda image: ("webp", cut(encoded(image, "WEBP"), 0.5)),
    "half of a lossless WebP": lambda image: ("webp", cut(encoded(image, "WEBP", lossless=True), 0.5)),
    "PNG of 100,000 x 100,000": lambda image: ("png", png_of_size(100_000, 100_000)),
    "PNG of size zero": lambda image: ("png", png_of_size(0, 10)),
    "JPEG of 65,000 x 65,000": lambda image: ("jpg", jpeg_of_size(image, 65_000, 65_000)),
    "JPEG of size zero": lambda image: ("jpg", jpeg_of_size(image, 0, 0)),
    "GIF": lambda image: ("gif", encoded(image, "GIF")),
    "TIFF": lambda image: ("tif", encoded(image, "TIFF")),
    "half of a HEIC": lambda image: ("heic", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(40)),
    "only a PNG signature": lambda image: ("png", b"\x89PNG\r\n\x1a\n"),
}

kinds = {}
for number in range(good + bad):
    label = ["bright", "dark"][number % 2]
    label_folder = folder / label
    label_folder.mkdir(parents=True, exist_ok=True)
    image = random_image(label)
    if number < good:
        extension, content = GOOD[number // 2 % len(GOOD)](image)
        (label_folder / f"good {number}.{extension}").write_bytes(content)
    else:
        kind = list(BAD)[(number - good) // 2 % len(BAD)]
        extension, content = BAD[kind](image)
        name = f"bad {number}.{extension}"
        (label_folder / name).write_bytes(content)
        kinds[f"{label}/{name}"] = kind
print(json.dumps(kinds))
