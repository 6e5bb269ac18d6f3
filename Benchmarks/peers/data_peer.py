"""Pillow and OpenCV: decode photos, crop and scale them to 224x224 pixels, augment them, and convert them to floats."""

import multiprocessing.pool
import pathlib
import random

from cases import DATA
from measure import arguments, measure, missing

SIZE = 224
# The maximum number of photos, as in `imprint bench data`.
MAXIMUM_PHOTO_COUNT = 128


def random_augmentation():
    """Returns random parameters as in Imprint: whether to flip, degrees, and the standard deviation of the blur or None."""
    blur = random.uniform(0.003, 0.015) * SIZE if random.random() < 1 / 3 else None
    return random.random() < 0.5, random.uniform(-15, 15), blur


def pillow():
    import numpy
    import PIL
    from PIL import Image, ImageFilter, ImageOps

    def read(file):
        flips, degrees, blur = random_augmentation()
        image = Image.open(file)
        image.draft("RGB", (SIZE, SIZE))
        image = ImageOps.fit(ImageOps.exif_transpose(image).convert("RGB"), (SIZE, SIZE), Image.Resampling.BILINEAR)
        if flips:
            image = ImageOps.mirror(image)
        image = image.rotate(degrees, Image.Resampling.BILINEAR)
        if blur:
            image = image.filter(ImageFilter.GaussianBlur(blur))
        return numpy.asarray(image, numpy.float32) / 127.5 - 1

    return read, PIL.__version__


def opencv():
    import cv2
    import numpy

    cv2.setNumThreads(1)

    def read(file):
        flips, degrees, blur = random_augmentation()
        image = cv2.imread(str(file), cv2.IMREAD_COLOR)
        height, width = image.shape[:2]
        side = min(height, width)
        top, left = (height - side) // 2, (width - side) // 2
        image = image[top : top + side, left : left + side]
        image = cv2.resize(image, (SIZE, SIZE), interpolation=cv2.INTER_AREA if side > SIZE else cv2.INTER_LINEAR)
        if flips:
            image = cv2.flip(image, 1)
        rotation = cv2.getRotationMatrix2D((SIZE / 2, SIZE / 2), degrees, 1)
        image = cv2.warpAffine(image, rotation, (SIZE, SIZE), flags=cv2.INTER_LINEAR)
        if blur:
            image = cv2.GaussianBlur(image, (0, 0), blur)
        return image.astype(numpy.float32) * (1 / 127.5) - 1

    return read, cv2.__version__


options = arguments("Measures reading photos.", ["pillow", "opencv"])
if options.case not in DATA or not options.data:
    raise SystemExit(f"expected one of the cases {', '.join(DATA)}, and a folder of photos in --data")
try:
    read, version = {"pillow": pillow, "opencv": opencv}[options.peer]()
except ModuleNotFoundError as error:
    missing(error)
files = sorted(f for f in pathlib.Path(options.data).rglob("*") if f.suffix.lower() in (".jpg", ".jpeg", ".png"))
files = files[:: -(-len(files) // MAXIMUM_PHOTO_COUNT)]
random.seed(0)
with multiprocessing.pool.ThreadPool(options.threads) as threads:
    step = (lambda: threads.map(read, files)) if options.threads > 1 else lambda: [read(file) for file in files]
    measure(options, step, "images/s", len(files), len(files), version=version)
