"""Preprocesses photos with Pillow: upright, in sRGB, short side scaled to SIDE pixels, centre crop.

    python resize-photos.py SIDE OUTPUT PHOTO...

Writes SIDE * SIDE * 3 bytes for each photo to OUTPUT. Requires Pillow 13.0.0.
"""

import io
import sys

from PIL import Image, ImageCms, ImageOps

side, output, photos = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
srgb = ImageCms.createProfile("sRGB")
with open(output, "wb") as file:
    for photo in photos:
        image = Image.open(photo)
        profile = image.info.get("icc_profile")
        image = ImageOps.exif_transpose(image).convert("RGB")
        if profile:
            image = ImageCms.profileToProfile(image, ImageCms.ImageCmsProfile(io.BytesIO(profile)), srgb)
        # Scale and crop in one step: cropping to whole pixels would shift the image by up to half a pixel.
        length = min(image.size)
        left, top = (image.width - length) / 2, (image.height - length) / 2
        box = (left, top, left + length, top + length)
        file.write(image.resize((side, side), Image.Resampling.BILINEAR, box=box).tobytes())
