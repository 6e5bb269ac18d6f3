"""Draws the logos that the logo features of Imprint are trained with: PNG images with transparency.

    python3 Benchmarks/accuracy/training_logos.py OUTPUT [--words 1500] [--processes 2]

The logos are

- icons of the Python package simpleicons (CC0) in their own colour, on plates, and beside words. The brands that Benchmarks/accuracy/brands.py
  measures, and names that contain theirs, are left out.
- invented words in the fonts of the system, some of them slanted or on plates. The results in the docs use Debian's fonts-cantarell, fonts-comfortaa,
  fonts-dejavu, fonts-lato, fonts-liberation2, fonts-lobster, fonts-open-sans and fonts-roboto.
- emoji of the font Noto Color Emoji (SIL Open Font License; Debian's fonts-noto-color-emoji).

A logo depends only on its number, and on the versions of the package and the fonts. Needs rsvg-convert (Debian's librsvg2-bin), Pillow, fonttools and
simpleicons.
"""

import argparse
import colorsys
import functools
import io
import random
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

FONTS = Path("/usr/share/fonts")
EMOJI = FONTS / "truetype/noto/NotoColorEmoji.ttf"
# Names of the brands that are measured: those that no icon's name may contain, and short ones that it may not start with.
BRANDS = [
    "adidas", "apple", "bmw", "citroen", "cocacola", "dhl", "fedex", "ferrari", "google", "heineken", "mcdonald", "nike", "pepsi", "porsche",
    "redbull", "starbucks", "texaco", "unicef", "vodafone", "yahoo",
]
SHORT_BRANDS = re.compile("(ford|hp|mini|nbc|puma|sprite)(?![a-z])|intel")
SIZE = 256


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--words", type=int, default=1500, help="the number of logos that are words")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    if not EMOJI.exists():
        sys.exit(f"{EMOJI} is missing. Install fonts-noto-color-emoji.")
    args.output.mkdir(parents=True, exist_ok=True)
    jobs = [("icon", index) for index in range(len(icons()))]
    jobs += [("word", index) for index in range(args.words)] + [("emoji", index) for index in range(len(emoji()))]
    with ProcessPoolExecutor(args.processes) as pool:
        count = sum(pool.map(functools.partial(write, args.output), jobs, chunksize=50))
    print(f"{count} logos in {args.output}; {len(jobs) - count} were too small or too long")


def write(folder, job):
    """Draws a logo and writes it; returns False if it is too small or too long."""
    kind, index = job
    generator = random.Random(f"{kind} {index}")
    image = {"icon": icon_logo, "word": word_logo, "emoji": emoji_logo}[kind](generator, index)
    box = image.getbbox()
    if not box:
        return False
    image = image.crop(box)
    image.thumbnail((SIZE, SIZE))
    if min(image.size) < 24 or max(image.size) > 6 * min(image.size):
        return False
    image.save(folder / f"{kind}-{index}.png")
    return True


@functools.cache
def icons():
    """Returns the icons without the brands that are measured, by name."""
    from simpleicons.all import icons as all_icons

    names = [name for name, icon in sorted(all_icons.items()) if not any(brand in icon.slug for brand in BRANDS)]
    return [all_icons[name] for name in names if not SHORT_BRANDS.match(all_icons[name].slug)]


@functools.cache
def emoji():
    """Returns the characters of the emoji font, without skin tones and parts of flags."""
    from fontTools.ttLib import TTFont

    codes = sorted(TTFont(EMOJI).getBestCmap())
    return [chr(code) for code in codes if 0x2600 < code < 0x1FAFF and not 0x1F3FB <= code <= 0x1F3FF and not 0x1F1E6 <= code <= 0x1F1FF]


@functools.cache
def fonts():
    files = sorted(FONTS.rglob("*.ttf")) + sorted(FONTS.rglob("*.otf"))
    return [str(file) for file in files if "Emoji" not in file.name and "Math" not in file.name]


def icon_logo(generator, index):
    icon = icons()[index]
    style = generator.random()
    own, other = rgb(icon.hex), random_color(generator)
    if style < 0.5:
        return draw_icon(icon, SIZE, own)
    if style < 0.65:
        return on_plate(generator, draw_icon(icon, 200, contrasting(generator, other)), other)
    if style < 0.8:
        return on_plate(generator, draw_icon(icon, 200, contrasting(generator, own)), own)
    return beside(generator, draw_icon(icon, 150, own), draw_word(generator, other, generator.randint(60, 110)))


def word_logo(generator, index):
    color = random_color(generator)
    if generator.random() < 0.4:
        return on_plate(generator, draw_word(generator, contrasting(generator, color)), color)
    return draw_word(generator, color)


def emoji_logo(generator, index):
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGBA", (150, 150))
    # The font has bitmaps of this size only.
    ImageDraw.Draw(image).text((5, 5), emoji()[index], font=ImageFont.truetype(str(EMOJI), 109), embedded_color=True)
    return image


def draw_icon(icon, size, color):
    from PIL import Image

    svg = icon.svg.replace("<svg ", '<svg fill="#%02x%02x%02x" ' % color, 1)
    command = ["rsvg-convert", "-w", str(size), "-h", str(size)]
    png = subprocess.run(command, input=svg.encode(), stdout=subprocess.PIPE, check=True).stdout
    return Image.open(io.BytesIO(png)).convert("RGBA")


def draw_word(generator, color, height=110):
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(generator.choice(fonts()), height)
    word = invented_word(generator)
    left, top, right, bottom = font.getbbox(word)
    image = Image.new("RGBA", (max(right - left, 1) + 16, max(bottom - top, 1) + 16))
    ImageDraw.Draw(image).text((8 - left, 8 - top), word, font=font, fill=color)
    if generator.random() < 0.2:
        slanted = (image.width + image.height // 4, image.height)
        image = image.transform(slanted, Image.Transform.AFFINE, (1, 0.25, -image.height * 0.25, 0, 1, 0), Image.Resampling.BICUBIC)
    return image


def invented_word(generator):
    consonants, vowels = "bcdfghjklmnprstvwz", "aeiouy"

    def syllable():
        end = generator.choice(consonants) if generator.random() < 0.3 else ""
        return generator.choice(consonants) + generator.choice(vowels) + end

    def case(word):
        return generator.choice([str.upper, str.title, str.lower, str.title])(word)

    word = case("".join(syllable() for _ in range(generator.choice([1, 1, 2, 2, 2, 3]))))
    return word + " " + case(syllable() + syllable()) if generator.random() < 0.15 else word


def on_plate(generator, image, color):
    """Draws an image on a rectangle or an ellipse, which may have an outline."""
    from PIL import Image, ImageDraw

    margin = int(max(image.size) * generator.uniform(0.08, 0.25))
    width, height = image.width + 2 * margin, image.height + 2 * margin
    shape = generator.choice(["rectangle", "rounded", "ellipse"])
    if shape == "ellipse":
        width, height = int(width * 1.25), int(height * 1.25)
    if abs(width - height) < 0.3 * width and generator.random() < 0.5:
        width = height = max(width, height)
    plate = Image.new("RGBA", (width, height))
    line = contrasting(generator, color) if generator.random() < 0.3 else None
    options = {"fill": color, "outline": line, "width": max(3, int(min(width, height) * generator.uniform(0.02, 0.06)))}
    draw, box = ImageDraw.Draw(plate), (1, 1, width - 2, height - 2)
    if shape == "ellipse":
        draw.ellipse(box, **options)
    elif shape == "rounded":
        draw.rounded_rectangle(box, int(min(width, height) * generator.uniform(0.1, 0.5)), **options)
    else:
        draw.rectangle(box, **options)
    plate.alpha_composite(image, ((width - image.width) // 2, (height - image.height) // 2))
    return plate


def beside(generator, first, second, gap=15):
    """Draws two images beside each other or one above the other."""
    from PIL import Image

    if generator.random() < 0.6:
        image = Image.new("RGBA", (first.width + gap + second.width, max(first.height, second.height)))
        image.alpha_composite(first, (0, (image.height - first.height) // 2))
        image.alpha_composite(second, (first.width + gap, (image.height - second.height) // 2))
    else:
        image = Image.new("RGBA", (max(first.width, second.width), first.height + gap + second.height))
        image.alpha_composite(first, ((image.width - first.width) // 2, 0))
        image.alpha_composite(second, ((image.width - second.width) // 2, first.height + gap))
    return image


def rgb(text):
    return tuple(int(text[index:index + 2], 16) for index in (0, 2, 4))


def random_color(generator):
    """Returns a random colour; a quarter of them are grey."""
    hue, saturation, value = generator.random(), generator.random() ** 0.5, generator.random()
    if generator.random() < 0.25:
        saturation = 0
    return tuple(int(255 * channel) for channel in colorsys.hsv_to_rgb(hue, saturation, value))


def contrasting(generator, color):
    """Returns a random colour whose luminance differs by more than 0.35, or else black or white."""
    for _ in range(50):
        other = random_color(generator)
        if abs(luminance(other) - luminance(color)) > 0.35:
            return other
    return (255, 255, 255) if luminance(color) < 0.5 else (0, 0, 0)


def luminance(color):
    return (0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]) / 255


if __name__ == "__main__":
    main()
