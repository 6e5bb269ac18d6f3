"""Draws photo-like images of fruit on a table, seen from above, with the exact bounding boxes."""

import math

from PIL import Image, ImageChops, ImageDraw, ImageFilter

SCALE = 2  # supersampling of scenes, for smooth edges

# Shapes: each function returns the layers of a fruit from the lowest to the highest, in a square of 2 x 2 units around the
# origin: a mask, the colours in the light and in the shade, and whether the surface has pores. ------------------------------


def apple(random, side):
    light, shade = random.choice((
        ((232, 74, 58), (128, 14, 26)), ((222, 52, 48), (110, 8, 24)), ((236, 118, 70), (160, 30, 26)), ((178, 208, 84), (92, 132, 34))))
    outline = []
    for step in range(120):
        angle = math.tau * step / 120
        from_top = min(angle, math.tau - angle)
        radius = 0.86 - 0.22 * math.exp(-((from_top / 0.32) ** 2)) - 0.07 * math.exp(-(((from_top - math.pi) / 0.35) ** 2))
        outline.append((radius * math.sin(angle) * (1.06 + 0.06 * math.cos(angle)), 0.08 - radius * math.cos(angle)))
    return [
        (polygon(outline, side), light, shade, False),
        (lens(side, (0.05, -0.66), (0.64, -0.98), 0.13), (134, 186, 74), (58, 110, 34), False),
        (stroke(side, [(0.0, -0.48), (0.02, -0.72), (0.09, -0.95)], 0.08), (112, 78, 44), (62, 40, 20), False)]


def lemon(random, side):
    light, shade = random.choice((((255, 232, 92), (218, 160, 22)), ((255, 238, 110), (222, 170, 36)), ((246, 232, 96), (196, 172, 40))))
    body = blob(side, [(0, 0, 0.76, 0.6), (-0.78, 0, 0.2, 0.13), (0.78, 0, 0.2, 0.13)], 0.05)
    return [(body, light, shade, True)]


def orange(random, side):
    light, shade = random.choice((((255, 174, 62), (206, 92, 10)), ((255, 160, 44), (196, 80, 8)), ((255, 190, 88), (214, 112, 20))))
    star = [(0.52 + (0.11 if step % 2 else 0.05) * math.cos(math.tau * step / 10), -0.4 + (0.11 if step % 2 else 0.05) * math.sin(math.tau * step / 10))
            for step in range(10)]
    return [(blob(side, [(0, 0, 0.86, 0.84)], 0.02), light, shade, True), (polygon(star, side), (150, 160, 70), (86, 100, 36), False)]


def pear(random, side):
    light, shade = random.choice((((224, 220, 102), (142, 146, 38)), ((206, 214, 92), (116, 138, 38)), ((240, 214, 104), (176, 130, 40))))
    body = blob(side, [(0, 0.34, 0.62, 0.56), (0, -0.1, 0.42, 0.4), (0, -0.46, 0.27, 0.3)], 0.13)
    return [
        (body, light, shade, False),
        (stroke(side, [(0.0, -0.68), (0.03, -0.84), (0.1, -0.98)], 0.07), (120, 88, 50), (66, 44, 22), False)]


def plum(random, side):
    light, shade = random.choice((((142, 92, 172), (52, 22, 78)), ((120, 84, 166), (44, 24, 82)), ((158, 84, 140), (70, 18, 58))))
    body = blob(side, [(0, 0.02, 0.68, 0.8)], 0.02)
    crease = stroke(side, [(0.02, -0.76), (0.2, -0.3), (0.22, 0.2), (0.06, 0.78)], 0.025)
    return [
        (body, light, shade, False), (crease.filter(ImageFilter.GaussianBlur(side / 150)), shade, shade, False),
        (stroke(side, [(0.0, -0.74), (0.01, -0.96)], 0.06), (110, 96, 50), (60, 50, 24), False)]


FRUIT = {"Apple": (apple, 1.0), "Lemon": (lemon, 0.86), "Orange": (orange, 0.95), "Pear": (pear, 1.12), "Plum": (plum, 0.72)}

# Scenes -----------------------------------------------------------------------------------------------------------------


def photo(random, label, size=(320, 240), reach=(0.09, 0.38), dishes=3, background=None):
    """Returns an image with one fruit among up to `dishes` dishes, on a random table if there is no background."""
    image = background.copy() if background else table(random, (size[0] * SCALE, size[1] * SCALE))
    taken = []
    taken.append(add_fruit(random, image, label, random.uniform(*reach) * image.height, taken))
    for _ in range(random.randrange(dishes + 1)):
        add_dish(random, image, taken)
    return camera(random, image, size)


def scene(random, count, size=(640, 480), reach=(0.1, 0.2), dishes=3):
    """Returns an image with up to `count` fruits beside each other, and their labels and boxes (left, top, right, bottom)."""
    image = table(random, (size[0] * SCALE, size[1] * SCALE))
    objects, taken = [], []
    for index in range(random.randrange(dishes + 1)):
        add_dish(random, image, taken, onto=index == 0)
    for _ in range(count):
        label = random.choice(list(FRUIT))
        box = add_fruit(random, image, label, random.uniform(*reach) * image.height, taken)
        if box:
            taken.append(box)
            objects.append((label, tuple(round(side / SCALE) for side in box)))
    return camera(random, image, size), objects


def table(random, size):
    """Returns a table top: wood, a checked cloth, slate or a plain colour."""
    kind = random.choice(("wood", "wood", "cloth", "slate", "plain"))
    width, height = size
    if kind == "wood":
        tone = random.choice(((196, 154, 108), (168, 122, 80), (214, 184, 144), (128, 92, 62)))
        image = Image.new("RGB", size, tone)
        plank = height // random.randint(3, 5)
        for top in range(0, height, plank):
            grain = noise(random, (max(width // 160, 2), plank // 5), (width, plank)).point(lambda value: value * 0.42)
            part = Image.new("RGB", (width, plank), shaded(tone, random.uniform(0.9, 1.08)))
            part.paste(Image.new("RGB", part.size, shaded(tone, 0.66)), (0, 0), grain)
            ImageDraw.Draw(part).rectangle((0, plank - 5, width, plank), fill=shaded(tone, 0.48))
            image.paste(part, (0, top))
    elif kind == "cloth":
        tone = random.choice(((60, 104, 160), (176, 62, 62), (70, 132, 96), (150, 120, 86)))
        image = Image.new("RGB", size, (244, 240, 232))
        pitch = random.randint(40, 90)
        for axis in (0, 1):
            over = Image.new("L", size, 0)
            draw = ImageDraw.Draw(over)
            for start in range(0, size[axis], 2 * pitch):
                draw.rectangle((start, 0, start + pitch, height) if axis == 0 else (0, start, width, start + pitch), fill=110)
            image.paste(Image.new("RGB", size, tone), (0, 0), over)
        image = image.rotate(random.uniform(-20, 20), Image.Resampling.BICUBIC, fillcolor=(244, 240, 232)).crop(
            (width // 8, height // 8, width - width // 8, height - height // 8)).resize(size, Image.Resampling.BICUBIC)
    elif kind == "slate":
        tone = random.choice(((74, 80, 88), (96, 98, 96), (60, 66, 84)))
        image = Image.new("RGB", size, tone)
        for cell in (10, 40, 160):
            cloud = noise(random, (width // cell, height // cell), size).point(lambda value: value * 0.22)
            image.paste(Image.new("RGB", size, shaded(tone, random.choice((0.7, 1.4)))), (0, 0), cloud)
    else:
        tone = random.choice(((226, 216, 202), (200, 214, 218), (232, 206, 190), (208, 214, 190), (238, 236, 232)))
        slope = Image.linear_gradient("L").rotate(random.choice((0, 90, 180, 270))).resize(size)
        image = Image.composite(Image.new("RGB", size, tone), Image.new("RGB", size, shaded(tone, 0.86)), slope)
    return image


def add_fruit(random, image, label, reach, taken):
    """Draws a fruit beside the boxes `taken`. Returns its box, or None if there is no room."""
    draw, factor = FRUIT[label]
    side = round(2.5 * reach * factor)
    center = free_position(random, image.size, reach * factor, taken)
    if center is None:
        return None
    turn = random.gauss(0, 35) if label in ("Apple", "Pear") else random.uniform(0, 360)
    sprite = Image.new("RGBA", (side, side))
    for index, (mask, light, shade, has_pores) in enumerate(draw(random, side)):
        mask = mask.rotate(turn, Image.Resampling.BICUBIC)
        skin = shading(random, mask, light, shade, has_pores, gloss=0.62 if index == 0 else 0)
        sprite.alpha_composite(Image.merge("RGBA", [*skin.split(), mask]))
    left, top = round(center[0] - side / 2), round(center[1] - side / 2)
    cast_shadow(image, sprite.getchannel("A"), (left, top), reach * 0.14)
    image.paste(sprite, (left, top), sprite)
    visible = sprite.getchannel("A").point(lambda value: 255 if value > 127 else 0).getbbox()
    box = left + visible[0], top + visible[1], left + visible[2], top + visible[3]
    return max(box[0], 0), max(box[1], 0), min(box[2], image.width), min(box[3], image.height)


def add_dish(random, image, taken, onto=False):
    """Draws a plate, a cup of coffee, a board or a spoon. Fruit may lie on it if `onto` is true."""
    kind = random.choice(("plate", "board") if onto else ("plate", "cup", "spoon", "cup"))
    span = image.height * {"plate": random.uniform(0.3, 0.4), "board": random.uniform(0.34, 0.42), "cup": random.uniform(0.13, 0.18),
                           "spoon": random.uniform(0.2, 0.26)}[kind]
    if onto:
        center = image.width * random.uniform(0.3, 0.7), image.height * random.uniform(0.35, 0.65)
    else:
        center = free_position(random, image.size, span, taken)
    if center is None:
        return
    side = round(2.2 * span)
    left, top = round(center[0] - side / 2), round(center[1] - side / 2)
    turn = random.uniform(0, 360)
    layers = []
    if kind == "plate":
        tone = random.choice(((246, 244, 240), (214, 226, 232), (240, 228, 206), (116, 140, 160)))
        for radius, factor in ((0.9, 1), (0.85, 0.93), (0.62, 0.86), (0.6, 0.97)):
            layers.append((blob(side, [(0, 0, radius, radius)], 0), shaded(tone, factor), shaded(tone, factor * 0.95)))
    elif kind == "board":
        tone = random.choice(((206, 164, 112), (176, 128, 82)))
        mask = Image.new("L", (side, side), 0)
        ImageDraw.Draw(mask).rounded_rectangle((side * 0.1, side * 0.25, side * 0.9, side * 0.75), side * 0.05, fill=255)
        layers = [(mask, tone, shaded(tone, 0.86))]
    elif kind == "cup":
        tone = random.choice(((240, 240, 238), (70, 110, 140), (196, 84, 66), (60, 62, 66)))
        layers = [
            (stroke(side, [(0.5, 0), (0.98, 0)], 0.2), shaded(tone, 0.95), shaded(tone, 0.8)),
            (blob(side, [(0, 0, 0.72, 0.72)], 0), tone, shaded(tone, 0.8)),
            (blob(side, [(0, 0, 0.62, 0.62)], 0), (104, 66, 38), (58, 34, 18))]
    else:
        tone = (206, 208, 212)
        layers = [
            (stroke(side, [(-0.2, 0), (0.95, 0)], 0.09), tone, shaded(tone, 0.75)),
            (blob(side, [(-0.55, 0, 0.36, 0.22)], 0.02), shaded(tone, 1.1), shaded(tone, 0.7))]
    sprite = Image.new("RGBA", (side, side))
    for mask, light, shade in layers:
        mask = mask.rotate(turn, Image.Resampling.BICUBIC)
        sprite.alpha_composite(Image.merge("RGBA", [*shading(random, mask, light, shade).split(), mask]))
    cast_shadow(image, sprite.getchannel("A"), (left, top), image.height * 0.012)
    image.paste(sprite, (left, top), sprite)
    if not onto:
        taken.append((center[0] - span, center[1] - span, center[0] + span, center[1] + span))


def camera(random, image, size):
    """Returns the image in its final size, with light from one side, blur and noise."""
    slope = Image.linear_gradient("L").rotate(random.choice((0, 90, 180, 270))).resize(image.size)
    dark = random.uniform(0.72, 0.96)
    image = Image.composite(image, image.point(lambda value: value * dark), slope)
    image = image.resize(size, Image.Resampling.LANCZOS).filter(ImageFilter.GaussianBlur(random.uniform(0, 0.8)))
    strength = random.uniform(0.01, 0.035)
    grain = Image.frombytes("RGB", size, random.randbytes(3 * size[0] * size[1]))
    return ImageChops.add(image, grain.point(lambda value: value * strength), 1, -round(127 * strength))


# Light, shapes and positions --------------------------------------------------------------------------------------------


def shading(random, mask, light, shade, has_pores=False, gloss=0):
    """Returns the surface of a shape: light at the upper left, shade at the lower right."""
    left, top, right, bottom = mask.getbbox() or (0, 0, 1, 1)
    span = max(right - left, bottom - top)
    reach = round(span * 2.1)
    glow = Image.new("L", mask.size, 255)
    glow.paste(Image.radial_gradient("L").resize((reach, reach)), (round(left + span * 0.34 - reach / 2), round(top + span * 0.3 - reach / 2)))
    surface = Image.composite(Image.new("RGB", mask.size, shade), Image.new("RGB", mask.size, light), glow.point(lambda value: min(value * 1.35, 255)))
    if has_pores:
        cell = max(round(span / 70), 1)
        pores = noise(random, (max(mask.width // cell, 1), max(mask.height // cell, 1)), mask.size).point(lambda value: value * 0.07)
        surface = ImageChops.subtract(surface, Image.merge("RGB", [pores] * 3))
    if gloss:
        shine = Image.new("L", mask.size, 0)
        x, y = left + span * 0.32, top + span * 0.28
        ImageDraw.Draw(shine).ellipse((x - span * 0.13, y - span * 0.08, x + span * 0.13, y + span * 0.08), fill=round(255 * gloss))
        shine = shine.filter(ImageFilter.GaussianBlur(span * 0.045))
        surface.paste(Image.new("RGB", mask.size, "white"), (0, 0), shine)
    return surface


def cast_shadow(image, mask, origin, offset):
    """Darkens the image below and to the right of a shape."""
    margin = round(offset * 3)
    soft = Image.new("L", (mask.width + 2 * margin, mask.height + 2 * margin), 0)
    soft.paste(mask.point(lambda value: value * 0.55), (margin, margin))
    soft = soft.filter(ImageFilter.GaussianBlur(offset * 0.8))
    image.paste((24, 18, 14), (round(origin[0] + offset - margin), round(origin[1] + offset - margin)), soft)


def free_position(random, size, reach, taken):
    """Returns a random centre of a disc inside the image and beside all boxes, or None after many attempts."""
    if 2 * reach >= min(size):
        return size[0] / 2, size[1] / 2
    for _ in range(60):
        x, y = random.uniform(reach, size[0] - reach), random.uniform(reach, size[1] - reach)
        if not any(x - reach < box[2] and box[0] < x + reach and y - reach < box[3] and box[1] < y + reach for box in taken):
            return x, y
    return None


def polygon(points, side):
    mask = Image.new("L", (side, side), 0)
    ImageDraw.Draw(mask).polygon([position(point, side) for point in points], fill=255)
    return mask


def blob(side, ellipses, softness):
    """Returns the union of ellipses (x, y, radius, radius) whose corners are rounded by a fraction of the side."""
    mask = Image.new("L", (side, side), 0)
    draw = ImageDraw.Draw(mask)
    for x, y, across, down in ellipses:
        draw.ellipse((*position((x - across, y - down), side), *position((x + across, y + down), side)), fill=255)
    if softness:
        mask = mask.filter(ImageFilter.GaussianBlur(softness * side / 2)).point(lambda value: max(0, min((value - 112) * 8, 255)))
    return mask


def lens(side, start, end, width):
    """Returns a leaf between two points."""
    points = []
    for sign in (1, -1):
        for step in range(13):
            part = step / 12 if sign > 0 else 1 - step / 12
            bulge = sign * width * math.sin(math.pi * part)
            length = math.dist(start, end)
            normal = (start[1] - end[1]) / length, (end[0] - start[0]) / length
            points.append((
                start[0] + (end[0] - start[0]) * part + normal[0] * bulge, start[1] + (end[1] - start[1]) * part + normal[1] * bulge))
    return polygon(points, side)


def stroke(side, points, width):
    mask = Image.new("L", (side, side), 0)
    draw = ImageDraw.Draw(mask)
    radius = width * side / 5
    centers = [position(point, side) for point in points]
    draw.line(centers, fill=255, width=round(2 * radius), joint="curve")
    for x, y in centers:
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    return mask


def position(point, side):
    """Returns the pixel of a point; the square of 2 x 2 units fills 80 % of the side."""
    return side / 2 + point[0] * side * 0.4, side / 2 + point[1] * side * 0.4


def noise(random, grid, size):
    """Returns smooth noise with as many random values as the grid has points."""
    return Image.frombytes("L", grid, random.randbytes(grid[0] * grid[1])).resize(size, Image.Resampling.BICUBIC)


def shaded(tone, factor):
    return tuple(min(round(part * factor), 255) for part in tone)
