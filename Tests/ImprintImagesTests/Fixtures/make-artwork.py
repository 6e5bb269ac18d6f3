"""Draws artwork-leaf.png and artwork-crest.png: logos with transparency for the tests of compositing.

    python3 make-artwork.py

Requires only numpy. Each pixel is the mean of 4x4 samples; the output is the same on every machine.
"""

import struct
import zlib
from pathlib import Path

import numpy as np

SIDE, SAMPLES = 256, 4


def grid():
    count = SIDE * SAMPLES
    axis = (np.arange(count) + 0.5) / count * 2 - 1
    return np.meshgrid(axis, axis)


def blend(layers):
    """Composites layers, each a mask and a colour or None to erase, and averages the samples of each pixel."""
    image = np.zeros((SIDE * SAMPLES, SIDE * SAMPLES, 4))
    for mask, color in layers:
        image[mask] = (0, 0, 0, 0) if color is None else (*color, 255)
    image = image.reshape(SIDE, SAMPLES, SIDE, SAMPLES, 4).mean(axis=(1, 3))
    alpha = image[..., 3:]
    colors = np.divide(image[..., :3] * 255, alpha, out=np.zeros_like(image[..., :3]), where=alpha > 0)
    return np.concatenate([colors, alpha], axis=2).round().astype(np.uint8)


def stroke(x, y, x1, y1, x2, y2, half):
    """Returns the mask of the points within `half` of a line segment."""
    dx, dy = x2 - x1, y2 - y1
    t = np.clip(((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy), 0, 1)
    return (x - x1 - t * dx) ** 2 + (y - y1 - t * dy) ** 2 < half * half


def leaf():
    """Draws a leaf in one colour with a stalk and transparent veins. It has no symmetry."""
    x, y = grid()
    # The blade is the overlap of two circles, tilted to the right.
    u, v = 0.8 * x - 0.6 * y, 0.6 * x + 0.8 * y
    blade = ((u + 0.15) ** 2 + (v - 0.62) ** 2 < 1.05) & ((u + 0.15) ** 2 + (v + 0.62) ** 2 < 1.05)
    stalk = stroke(u, v, -0.8, 0, -1.15, 0.16, 0.05)
    veins = stroke(u, v, -0.8, 0, 0.5, 0, 0.028)
    for start, reach in [(-0.5, 0.3), (-0.2, 0.34), (0.1, 0.26)]:
        veins |= stroke(u, v, start, 0, start + 0.25, reach, 0.022)
    for start, reach in [(-0.35, 0.3), (-0.05, 0.3)]:
        veins |= stroke(u, v, start, 0, start + 0.25, -reach, 0.022)
    return blend([(blade | stalk, (38, 140, 66)), (veins & blade, None)])


def crest():
    """Draws a blue shield with a golden border, a white F and a red dot."""
    x, y = grid()

    def shield(inset):
        half = 0.72 - inset
        foot = (np.abs(x) / (0.72 - inset)) ** 2 * 0.9
        return (np.abs(x) < half) & (y > -0.88 + inset) & (y < 0.95 - inset * 1.2 - foot)

    letter = stroke(x, y, -0.22, -0.55, -0.22, 0.4, 0.085)
    letter |= stroke(x, y, -0.22, -0.55, 0.32, -0.55, 0.085)
    letter |= stroke(x, y, -0.22, -0.1, 0.18, -0.1, 0.085)
    dot = (x - 0.22) ** 2 + (y - 0.22) ** 2 < 0.12**2
    return blend(
        [
            (shield(0), (214, 168, 46)),
            (shield(0.09), (24, 54, 128)),
            (letter, (250, 250, 250)),
            (dot, (206, 38, 44)),
        ]
    )


def write_png(path, pixels):
    def chunk(kind, content):
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 6, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


if __name__ == "__main__":
    folder = Path(__file__).parent
    write_png(folder / "artwork-leaf.png", leaf())
    write_png(folder / "artwork-crest.png", crest())
