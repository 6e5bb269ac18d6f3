"""Writes small photos of many formats to a folder and prints the pixels that Pillow decodes, upright and in sRGB.

    python make-photos.py FOLDER

The output is a JSON list of {"name", "width", "height", "channels", "samples" (base64)}.
Requires Pillow 13.0.0 and pillow-heif 1.8.1.
"""

import base64
import io
import json
import pathlib
import struct
import sys
import zlib

import numpy
import pillow_heif
from PIL import Image, ImageCms, ImageOps

import icc_profiles as icc

folder = pathlib.Path(sys.argv[1])
pillow_heif.register_heif_opener()
references = []
P3, ADOBE, GREY = icc.rgb("Display P3"), icc.rgb("Adobe RGB", icc.gamma(2.2)), icc.grey(1.6)
WIDTH, HEIGHT = 48, 32


def gradient(mode="RGB", width=WIDTH, height=HEIGHT):
    """Returns an image with strong colours, without sharp edges or symmetry."""
    y, x = numpy.mgrid[0:height, 0:width].astype(float)
    x, y = x / width, y / height
    channels = [230 - 200 * x, 30 + 200 * y, 40 + 90 * x + 100 * y * x, 255 * (0.2 + 0.8 * y)]
    names = {"L": [0], "LA": [0, 3], "RGB": [0, 1, 2], "RGBA": [0, 1, 2, 3], "CMYK": [0, 1, 2, 3]}[mode]
    samples = numpy.stack([channels[index] for index in names], -1).round().astype(numpy.uint8)
    return Image.fromarray(samples[..., 0] if mode == "L" else samples, mode)


def in_srgb(image):
    """Returns the image upright and in sRGB."""
    profile = image.info.get("icc_profile")
    image = ImageOps.exif_transpose(image)
    if image.mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if profile:
        alpha = image.getchannel("A") if image.mode in ("LA", "RGBA") else None
        opaque = image.convert({"LA": "L", "RGBA": "RGB"}.get(image.mode, image.mode))
        source, target = ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB")
        opaque = ImageCms.profileToProfile(opaque, source, target, outputMode="RGB")
        if alpha:
            opaque.putalpha(alpha)
        return opaque
    return image.convert("RGBA" if image.mode in ("LA", "RGBA") else "RGB")


def add_reference(name, samples):
    height, width, channels = samples.shape
    references.append({"name": name, "width": width, "height": height, "channels": channels,
                       "samples": base64.b64encode(samples.astype(numpy.uint8).tobytes()).decode()})  # fmt: skip


def add(name, data, expected=None):
    (folder / name).write_bytes(data)
    add_reference(name, numpy.asarray(in_srgb(Image.open(folder / name))) if expected is None else expected)


def saved(image, **options):
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def exif(orientation):
    block = Image.Exif()
    block[0x0112] = orientation
    return block.tobytes()


def png(samples, chunks, depth=8):
    """Returns a PNG of RGB or RGBA samples with these extra chunks, some of which Pillow cannot write."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = samples.shape
    rows = b"".join(b"\0" + row.astype(">u2" if depth == 16 else ">u1").tobytes() for row in samples)
    header = struct.pack(">IIBBBBB", width, height, depth, {3: 2, 4: 6}[channels], 0, 0, 0)
    body = [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in body)


def iccp(profile):
    return b"iCCP", b"profile\0\0" + zlib.compress(profile)


def linear_to_srgb(light):
    light = numpy.clip(light, 0, 1)
    curve = numpy.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return (curve * 255).round()


def riff(chunks):
    body = b"".join(kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def three_bytes(number):
    return struct.pack("<I", number)[:3]


def jpegs():
    rgb = gradient()
    for orientation in range(1, 9):
        add(f"orientation-{orientation}.jpg",
            saved(rgb, format="JPEG", quality=95, exif=exif(orientation), icc_profile=P3))  # fmt: skip
    add("p3.jpg", saved(rgb, format="JPEG", quality=95, icc_profile=P3))
    add("adobe-rgb-progressive.jpg", saved(rgb, format="JPEG", quality=95, icc_profile=ADOBE, progressive=True))
    add("srgb.jpg", saved(rgb, format="JPEG", quality=95, icc_profile=icc.rgb("sRGB")))
    add("grey-profile.jpg", saved(gradient("L"), format="JPEG", quality=95, icc_profile=GREY))
    add("cmyk-profile.jpg", saved(gradient("CMYK"), format="JPEG", quality=95, icc_profile=icc.cmyk()))

    # A profile in several segments, whose order in the file is arbitrary.
    parts = saved(rgb, format="JPEG", quality=95, icc_profile=icc.rgb("Display P3", extra=150_000))
    start = parts.index(b"\xff\xe2")
    segments, position = [], start
    while parts[position : position + 2] == b"\xff\xe2":
        end = position + 2 + struct.unpack(">H", parts[position + 2 : position + 4])[0]
        segments.append(parts[position:end])
        position = end
    assert len(segments) == 3
    add("long-profile.jpg", parts[:start] + segments[2] + segments[0] + segments[1] + parts[position:])
    plain = numpy.asarray(rgb_of(saved(rgb, format="JPEG", quality=95)))
    add("missing-part.jpg", parts[:start] + segments[2] + segments[0] + parts[position:], plain)
    add("damaged-profile.jpg", saved(rgb, format="JPEG", quality=95, icc_profile=b"no profile" * 20), plain)
    add("wrong-profile.jpg", saved(rgb, format="JPEG", quality=95, icc_profile=icc.cmyk()), plain)


def rgb_of(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def pngs():
    rgb, rgba = gradient(), gradient("RGBA")
    for orientation in range(1, 9):
        add(f"orientation-{orientation}.png", saved(rgba, format="PNG", exif=exif(orientation)))
    add("p3.png", saved(rgb, format="PNG", icc_profile=P3))
    add("alpha-adobe-rgb.png", saved(rgba, format="PNG", icc_profile=ADOBE))
    add("palette-p3.png", saved(rgb.quantize(64), format="PNG", icc_profile=P3))
    add("grey-profile.png", saved(gradient("L"), format="PNG", icc_profile=GREY))
    add("grey-alpha-profile.png", saved(gradient("LA"), format="PNG", icc_profile=GREY))
    samples, opaque = numpy.asarray(rgba), numpy.asarray(rgb)
    as_p3 = numpy.asarray(in_srgb(Image.open(folder / "p3.png")))
    add("16-bit-p3.png", png(samples.astype(int) * 257, [iccp(P3)], depth=16),
        numpy.dstack([as_p3, samples[..., 3]]))  # fmt: skip
    # libpng would apply this gamma on top of the profile.
    add("p3-and-gamma.png", png(opaque, [(b"gAMA", struct.pack(">I", 100_000)), iccp(P3)]), as_p3)
    add("code-points-p3.png", png(opaque, [(b"cICP", bytes((12, 13, 0, 1)))]), as_p3)
    add("high-dynamic-range.png", png(opaque, [(b"cICP", bytes((9, 16, 0, 1)))]), opaque)
    add("linear.png", png(opaque, [(b"gAMA", struct.pack(">I", 100_000))]), linear_to_srgb(opaque / 255))
    add("gamma-of-srgb.png", png(opaque, [(b"gAMA", struct.pack(">I", 45_455))]), opaque)
    add("gamma-0.png", png(opaque, [(b"gAMA", bytes(4))]), opaque)
    add("srgb-and-gamma.png", png(opaque, [(b"gAMA", struct.pack(">I", 100_000)), (b"sRGB", b"\0")]), opaque)
    d65_p3 = (31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000)
    add("chromaticities-p3.png",
        png(opaque, [(b"gAMA", struct.pack(">I", 45_455)), (b"cHRM", struct.pack(">8I", *d65_p3))]), as_p3)  # fmt: skip
    add("chromaticities-0.png", png(opaque, [(b"cHRM", bytes(32))]), opaque)
    add("packed-gigabyte.png", png(opaque, [iccp(bytes(1 << 26))]), opaque)


def webps():
    rgb, rgba = gradient(), gradient("RGBA")
    for orientation in range(1, 9):
        add(f"orientation-{orientation}.webp",
            saved(rgb, format="WEBP", lossless=True, exif=exif(orientation), icc_profile=P3))  # fmt: skip
    add("lossy.webp", saved(rgb, format="WEBP", quality=90))
    add("lossy-alpha-p3.webp", saved(rgba, format="WEBP", quality=90, icc_profile=P3))
    add("lossless.webp", saved(rgb, format="WEBP", lossless=True))
    add("lossless-alpha.webp", saved(rgba, format="WEBP", lossless=True, exact=True))
    frames = [rgb, rgb.transpose(Image.Transpose.ROTATE_180)]
    add("animated-p3.webp",
        saved(frames[0], format="WEBP", lossless=True, save_all=True, append_images=frames[1:], icc_profile=P3),
        numpy.asarray(in_srgb(Image.open(folder / "p3.png"))))  # fmt: skip
    # The first frame covers only a part of the image, which Pillow cannot write.
    small = saved(gradient("RGB", 20, 10), format="WEBP", lossless=True)[12:]
    frame_rectangle = three_bytes(4 // 2) + three_bytes(6 // 2) + three_bytes(20 - 1) + three_bytes(10 - 1)
    add("animated-part.webp", riff([
        (b"VP8X", bytes((0x12, 0, 0, 0)) + three_bytes(WIDTH - 1) + three_bytes(HEIGHT - 1)),
        (b"ANIM", bytes(6)), (b"ANMF", frame_rectangle + three_bytes(100) + b"\0" + small)]))  # fmt: skip


def heics():
    rgb, rgba = gradient("RGB", 64, 48), gradient("RGBA", 64, 48)
    best = {"format": "HEIF", "quality": 95, "chroma": 444}
    for orientation in range(1, 9):
        add(f"orientation-{orientation}.heic", saved(rgb, exif=exif(orientation), icc_profile=P3, **best))
    add("half-colour.heic", saved(rgb, format="HEIF", quality=90))
    add("alpha.heic", saved(rgba, **best))
    add("alpha-p3.heic", saved(rgba, icc_profile=P3, **best))
    add("grid-p3.heic", saved(gradient("RGB", 300, 200), tile_size=128, icc_profile=P3, **best))
    add("grid-turned.heic", saved(gradient("RGB", 300, 200), tile_size=128, exif=exif(6), **best))
    shown = saved(rgb, **best)
    as_p3 = Image.open(io.BytesIO(shown)).convert("RGB")
    as_p3.info["icc_profile"] = P3
    add("code-points-p3.heic", saved(rgb, save_nclx_profile=True, color_primaries=12, transfer_characteristic=13, **best),
        numpy.asarray(in_srgb(as_p3)))  # fmt: skip
    deep = pillow_heif.from_bytes(
        mode="RGB;16", size=rgb.size, data=(numpy.asarray(rgb).astype("<u2") * 257).tobytes())
    buffer = io.BytesIO()
    deep.save(buffer, quality=95, chroma=444)
    add("10-bit.heic", buffer.getvalue())


jpegs()
pngs()
webps()
heics()
print(json.dumps(references))
