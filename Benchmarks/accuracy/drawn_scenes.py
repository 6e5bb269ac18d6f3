"""Logos and scenes, drawn with Pillow, independently of the compositing in Imprint."""

import colorsys
import math
import string

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont, ImageStat

SIDE = 480  # of a logo, in pixels

# Logos: their layers from the lowest to the highest, each a mask and its colour -------------------------------------------


def letter():
    """A bold letter in a disc."""
    disc, sign = mask(), mask()
    ImageDraw.Draw(disc).ellipse((8, 8, 472, 472), fill=255)
    write(sign, "R", 300, 240, 240, bold=14)
    return [(disc, (24, 52, 120)), (sign, (255, 255, 255))]


def leaf():
    """A leaf with cut-out veins, on a stem."""
    halves = []
    for left in (-140, 120):
        halves.append(mask())
        ImageDraw.Draw(halves[-1]).ellipse((left, -25, left + 500, 475), fill=255)
    blade = ImageChops.darker(*halves)
    draw = ImageDraw.Draw(blade)
    draw.line((240, 400, 240, 90), fill=0, width=16)
    for y in (160, 235, 310):
        draw.line((165, y - 55, 240, y + 20, 315, y - 55), fill=0, width=14)
    draw.rectangle((231, 400, 249, 478), fill=255)
    return [(blade.rotate(-30, Image.Resampling.BICUBIC), (30, 120, 50))]


def crest():
    """A shield with a chevron and three discs."""
    shield, charge = mask(), mask()
    foot = [(240 + 180 * math.cos(i * math.pi / 24), 240 + 230 * math.sin(i * math.pi / 24)) for i in range(25)]
    ImageDraw.Draw(shield).polygon([(60, 20), (420, 20), *foot], fill=255)
    draw = ImageDraw.Draw(charge)
    draw.polygon([(95, 290), (240, 175), (385, 290), (385, 355), (240, 240), (95, 355)], fill=255)
    for x, y in ((150, 110), (330, 110), (240, 375)):
        draw.ellipse((x - 42, y - 42, x + 42, y + 42), fill=255)
    return [(shield, (150, 20, 40)), (ImageChops.darker(charge, shield), (245, 200, 60))]


def bolt():
    """A flash of lightning, cut out of a rounded square."""
    plate = mask()
    draw = ImageDraw.Draw(plate)
    draw.rounded_rectangle((20, 20, 460, 460), 90, fill=255)
    draw.polygon([(275, 60), (130, 265), (225, 265), (190, 420), (350, 205), (250, 205)], fill=0)
    return [(plate, (230, 120, 20))]


def peak():
    """Two mountains with a snow line, and a sun."""
    rock, snow = mask(), mask()
    draw = ImageDraw.Draw(rock)
    draw.polygon([(20, 430), (180, 130), (280, 310), (330, 230), (460, 430)], fill=255)
    draw.ellipse((330, 50, 440, 160), fill=255)
    ImageDraw.Draw(snow).polygon([(180, 130), (128, 228), (160, 255), (180, 225), (205, 255), (234, 228)], fill=255)
    return [(rock, (40, 60, 90)), (snow, (250, 250, 250))]


def rings():
    """Two interlocked rings; the first one passes over the second at the top, and under it at the bottom."""
    links, outlines = [], []
    for x in (160, 320):
        links.append(mask())
        draw = ImageDraw.Draw(links[-1])
        draw.ellipse((x - 140, 100, x + 140, 380), fill=255)
        draw.ellipse((x - 90, 150, x + 90, 330), fill=0)
        outlines.append(links[-1].filter(ImageFilter.MaxFilter(31)))
    for lower, upper, top in ((1, 0, 80), (0, 1, 240)):
        gap = mask()
        ImageDraw.Draw(gap).rectangle((170, top, 310, top + 160), fill=255)
        links[lower] = ImageChops.subtract(links[lower], ImageChops.darker(outlines[upper], gap))
    return [(ImageChops.lighter(*links), (20, 110, 160))]


def waves():
    """Three waves in a disc."""
    disc = mask()
    draw = ImageDraw.Draw(disc)
    draw.ellipse((15, 15, 465, 465), fill=255)
    for y in (160, 250, 340):
        points = [(x, y + 28 * math.sin(x / 480 * 4 * math.pi)) for x in range(0, 481, 6)]
        draw.line(points, fill=0, width=30, joint="curve")
    return [(disc, (0, 130, 140))]


def tower():
    """Four bars of growing height with a slanted top, on a base."""
    bars = mask()
    draw = ImageDraw.Draw(bars)
    for i in range(4):
        left, top = 40 + 105 * i, 300 - 75 * i
        draw.polygon([(left, top), (left + 80, top - 45), (left + 80, 400), (left, 400)], fill=255)
    draw.rectangle((30, 425, 450, 460), fill=255)
    return [(bars, (90, 40, 130))]


def wordmark():
    """A word with a dot, three times as wide as tall."""
    line, dot = mask(), mask()
    write(line, "Kora", 190, 215, 240, bold=8)
    ImageDraw.Draw(dot).ellipse((405, 265, 460, 320), fill=255)
    return [(line, (20, 20, 20)), (dot, (220, 40, 40))]


def hexagon():
    """A hexagon of three rhombi, as an isometric cube."""
    cube = mask()
    draw = ImageDraw.Draw(cube)
    center = (240, 240)
    corners = [(240 + 225 * math.sin(i * math.pi / 3), 240 - 225 * math.cos(i * math.pi / 3)) for i in range(6)]
    draw.polygon(corners, fill=255)
    for i in (1, 3, 5):
        draw.line((center, corners[i]), fill=0, width=22)
    return [(cube, (30, 120, 60))]


LOGOS = {"letter": letter, "leaf": leaf, "crest": crest}
TEN_LOGOS = LOGOS | {
    "bolt": bolt, "peak": peak, "rings": rings, "waves": waves, "tower": tower, "wordmark": wordmark, "hexagon": hexagon}


def shape(random):
    """A plain shape."""
    plain = mask()
    draw = ImageDraw.Draw(plain)
    kind = random.randrange(5)
    if kind < 2:
        draw.ellipse((20, 20, 460, 460), fill=255)
        if kind == 1:
            draw.ellipse((110, 110, 370, 370), fill=0)
    elif kind == 2:
        draw.rectangle((40, 40 + random.randrange(120), 440, 440), fill=255)
    else:
        count = 3 if kind == 3 else 10
        radii = [230, 230 if kind == 3 else 100]
        draw.polygon(star(240, 240, radii, count, -math.pi / 2), fill=255)
    return [(plain, color(random))]


def word(random):
    """A word of random letters."""
    line = mask()
    write(line, "".join(random.choices(string.ascii_letters, k=random.randint(3, 6))), 130, 240, 240, bold=random.choice((0, 6)))
    return [(line, color(random))]


def artwork(layers):
    """Returns a logo in its original colours on a transparent background."""
    image = Image.new("RGBA", (SIDE, SIDE), layers[0][1] + (0,))
    for form, tone in layers:
        image.alpha_composite(Image.merge("RGBA", [*Image.new("RGB", image.size, tone).split(), form]))
    return image.crop(image.getbbox())


# Scenes -----------------------------------------------------------------------------------------------------------------


def scene(random, layers=None, original_color_probability=0.3):
    """Returns an image of background and clutter, with a logo or hard negative if there are layers, and with camera effects."""
    size = random.choice(((640, 480), (480, 640), (600, 600), (640, 400)))
    image = background(random, size)
    for _ in range(random.randrange(22)):
        clutter(random, image)
    sharpness = 1.4
    if layers:
        span = min(size) * math.exp(random.uniform(math.log(0.06), math.log(0.6)))
        composite(random, image, layers, span, random.random() < original_color_probability)
        sharpness = min(1.4, span / 30)
    return camera(random, image, random.uniform(0, sharpness))


def scene_of_several(random, logos, count, different=False, original_color_probability=0.3):
    """Returns an image with up to `count` of the logos, which do not overlap, and their labels and boxes (left, top, right, bottom).

    If the logos must be different, each is in the image at most once.
    """
    size = random.choice(((640, 480), (480, 640), (600, 600), (640, 400)))
    image = background(random, size)
    for _ in range(random.randrange(22)):
        clutter(random, image)
    objects, smallest = [], min(size)
    labels = random.sample(list(logos), count) if different else [random.choice(list(logos)) for _ in range(count)]
    for label in labels:
        span = min(size) * math.exp(random.uniform(math.log(0.08), math.log(0.4)))
        keeps_colors = random.random() < original_color_probability
        box = composite(random, image, logos[label], span, keeps_colors, [box for _, box in objects])
        if box:
            objects.append((label, box))
            smallest = min(smallest, span)
    return camera(random, image, random.uniform(0, min(1.4, smallest / 30))), objects


def background(random, size):
    """Returns a gradient, in most cases with a texture."""
    slope = Image.linear_gradient("L").rotate(random.uniform(0, 360), Image.Resampling.BICUBIC).crop((38, 38, 218, 218))
    image = Image.composite(*(Image.new("RGB", size, color(random)) for _ in range(2)), slope.resize(size))
    kind = random.randrange(5)
    over = Image.new("L", size, 0)
    draw = ImageDraw.Draw(over)
    pitch = random.randint(8, 60)
    if kind == 1:
        for x in range(0, size[0], 2 * pitch):
            draw.rectangle((x, 0, x + pitch, size[1]), fill=random.randint(40, 140))
    elif kind == 2:
        for row, y in enumerate(range(0, size[1], pitch)):
            for x in range(-(row % 2) * pitch, size[0], 2 * pitch):
                draw.rectangle((x, y, x + 2 * pitch - 3, y + pitch - 3), fill=random.randint(30, 150))
    elif kind == 3:
        for _ in range(400):
            x, y, r = random.uniform(0, size[0]), random.uniform(0, size[1]), random.uniform(1, pitch / 4)
            draw.ellipse((x - r, y - r, x + r, y + r), fill=random.randint(60, 200))
    elif kind == 4:
        for cell in (4, 16, 64):
            grid = size[0] // cell + 1, size[1] // cell + 1
            cloud = Image.frombytes("L", grid, random.randbytes(grid[0] * grid[1])).resize(size, Image.Resampling.BICUBIC)
            over = Image.blend(over, cloud, 0.4)
    return Image.composite(Image.new("RGB", size, color(random)), image, over)


def clutter(random, image):
    """Draws a shape, a line or a word at a random position."""
    draw = ImageDraw.Draw(image)
    x, y = random.uniform(0, image.width), random.uniform(0, image.height)
    reach = math.exp(random.uniform(math.log(8), math.log(150)))
    fill = color(random)
    kind = random.randrange(6)
    if kind == 0:
        draw.ellipse((x - reach, y - reach * random.uniform(0.4, 1), x + reach, y + reach * 0.4), fill=fill)
    elif kind == 1:
        draw.polygon(star(x, y, [reach * random.uniform(0.5, 1) for _ in range(3)], random.randint(3, 7), random.uniform(0, 6)), fill=fill)
    elif kind == 2:
        draw.rectangle((x, y, x + reach, y + reach * random.uniform(0.2, 2)), fill=fill, outline=color(random), width=random.randrange(4))
    elif kind == 3:
        draw.line((x, y, x + random.uniform(-4, 4) * reach, y + random.uniform(-4, 4) * reach), fill=fill, width=random.randint(1, 14))
    elif kind == 4:
        draw.arc((x - reach, y - reach, x + reach, y + reach), 0, random.uniform(60, 300), fill=fill, width=random.randint(2, 12))
    else:
        layer = Image.new("L", image.size, 0)
        letters = "".join(random.choices(string.ascii_letters + string.digits, k=random.randint(2, 9)))
        write(layer, letters, random.randint(14, 60), x, y, bold=random.randrange(3))
        layer = layer.rotate(random.gauss(0, 10), center=(x, y))
        image.paste(fill, (0, 0), layer)


def composite(random, image, layers, span, keeps_colors, taken=()):
    """Composites layers at a random position, with rotation, perspective and contrasting colours.

    Returns the bounding box (left, top, right, bottom), or None if there is no room beside the boxes `taken`.
    """
    for _ in range(50):
        left, top = random.uniform(0, image.width - span), random.uniform(0, image.height - span)
        if not any(left < box[2] and box[0] < left + span and top < box[3] and box[1] < top + span for box in taken):
            break
    else:
        return None
    turn = math.radians(random.uniform(-15, 15))
    corners = []
    for x, y in ((-1, -1), (-1, 1), (1, 1), (1, -1)):
        reach = span / 2 * random.uniform(0.9, 1)
        corners += [(
            left + span / 2 + reach * (x * math.cos(turn) - y * math.sin(turn)),
            top + span / 2 + reach * (x * math.sin(turn) + y * math.cos(turn)))]
    background_luma = ImageStat.Stat(image.crop((round(left), round(top), round(left + span) + 1, round(top + span) + 1)).convert("L")).mean[0]
    # The upper layer of a logo with two colours may be cut out.
    opens = len(layers) > 1 and not keeps_colors and random.random() < 0.3
    if opens:
        layers = [(ImageChops.subtract(layers[0][0], layers[1][0]), layers[0][1])]
    below = background_luma
    visible = Image.new("L", image.size, 0)
    for form, tone in layers:
        if not keeps_colors or abs(luma(tone) - below) < 70:
            tone = contrasting(random, below)
        below = luma(tone)
        form = warped(form, corners, image.size)
        image.paste(tone, (0, 0), form)
        visible = ImageChops.lighter(visible, form)
    return visible.point(lambda value: 255 if value > 127 else 0).getbbox()


def warped(form, corners, size):
    """Warps a mask of SIDE x SIDE pixels to new corners: upper left, lower left, lower right, upper right."""
    # Supersampling by 4 for antialiased edges; a smaller mask for small logos.
    scale = 4
    span = max(abs(a - c) for a, c in zip(corners[0], corners[2])) * scale
    form = form.resize((max(round(min(span, SIDE)), 8),) * 2, Image.Resampling.LANCZOS)
    left, top = (math.floor(min(axis)) - 2 for axis in zip(*corners))
    right, bottom = (math.ceil(max(axis)) + 2 for axis in zip(*corners))
    rows = []
    last = form.width
    for (x, y), (u, v) in zip(corners, ((0, 0), (0, last), (last, last), (last, 0))):
        x, y = (x - left) * scale, (y - top) * scale
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y, u], [0, 0, 0, x, y, 1, -v * x, -v * y, v]]
    width, height = right - left, bottom - top
    fine = form.transform((width * scale, height * scale), Image.Transform.PERSPECTIVE, solved(rows), Image.Resampling.BICUBIC)
    result = Image.new("L", size, 0)
    result.paste(fine.resize((width, height), Image.Resampling.BOX), (left, top))
    return result


def camera(random, image, blur):
    """Returns the image with light from one side, blur and noise."""
    light = random.uniform(0.6, 1)
    slope = Image.linear_gradient("L").rotate(random.choice((0, 90, 180, 270))).resize(image.size)
    image = Image.composite(image, image.point(lambda value: value * light), slope)
    image = image.filter(ImageFilter.GaussianBlur(blur))
    strength = random.uniform(0, 0.18)
    noise = Image.frombytes("RGB", image.size, random.randbytes(3 * image.width * image.height))
    return ImageChops.add(image, noise.point(lambda value: value * strength), offset=-round(127 * strength))


# Shapes, colours and geometry -------------------------------------------------------------------------------------------


def mask():
    return Image.new("L", (SIDE, SIDE), 0)


def write(layer, text, size, x, y, bold=0):
    """Draws text centred at a point of a mask, in the default font of Pillow."""
    ImageDraw.Draw(layer).text((x, y), text, 255, ImageFont.load_default(size), "mm", stroke_width=bold)


def star(x, y, radii, count, turn):
    angles = [turn + 2 * math.pi * i / count for i in range(count)]
    return [(x + radii[i % len(radii)] * math.cos(a), y + radii[i % len(radii)] * math.sin(a)) for i, a in enumerate(angles)]


def color(random):
    red, green, blue = colorsys.hsv_to_rgb(random.random(), random.uniform(0, 0.9), random.uniform(0.1, 1))
    return round(255 * red), round(255 * green), round(255 * blue)


def luma(tone):
    return 0.299 * tone[0] + 0.587 * tone[1] + 0.114 * tone[2]


def contrasting(random, other):
    """Returns a colour whose luma differs by at least 90 of 255."""
    while True:
        tone = color(random)
        if abs(luma(tone) - other) >= 90:
            return tone


def solved(rows):
    """Returns the solution of linear equations, each a row of coefficients and the right-hand side (Gauss-Jordan elimination)."""
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i])]
    return [row[-1] for row in rows]
