"""Writes a black image of 64 million pixels, which compresses to a small file."""

import sys

from PIL import Image

mode, options = ("1", {}) if sys.argv[1].endswith("png") else ("RGB", {"quality": 10, "method": 0})
Image.new(mode, (8000, 8000)).save(sys.argv[1], **options)
