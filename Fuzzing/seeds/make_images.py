"""Writes the seeds of the image readers beside this script: small images, EXIF blocks and colour profiles.

Needs: pip install pillow pillow-heif (written against Pillow 13.0 and pillow-heif 1.8).
"""

import pathlib

import pillow_heif
from PIL import Image, ImageCms

pillow_heif.register_heif_opener()
folder = pathlib.Path(__file__).parent


def write(target, name, content):
    (folder / target).mkdir(exist_ok=True)
    (folder / target / name).write_bytes(content)


def save(name, image, **options):
    (folder / "image").mkdir(exist_ok=True)
    image.save(folder / "image" / name, **options)


colours = Image.new("RGB", (16, 12))
colours.putdata([(16 * x, 20 * y, 255 - 8 * (x + y)) for y in range(12) for x in range(16)])
alpha = colours.copy()
alpha.putalpha(Image.linear_gradient("L").resize((16, 12)))
profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
exif = Image.Exif()
exif[0x0112] = 6
exif[0x0132] = "2019:07:21 14:03:59"
exif.get_ifd(0x8769)[0x9003] = "2019:07:21 14:03:58"
block = exif.tobytes()

save("baseline.jpg", colours, quality=60, exif=block, icc_profile=profile)
save("progressive.jpg", colours, quality=60, progressive=True)
save("grey.jpg", colours.convert("L"), quality=60)
save("cmyk.jpg", colours.convert("CMYK"), quality=60)
save("colour.png", colours, icc_profile=profile, exif=block)
save("alpha.png", alpha)
save("palette.png", colours.quantize(16), transparency=0)
save("grey16.png", colours.convert("I;16"))
save("lossy.webp", colours, quality=60, exif=block, icc_profile=profile)
save("lossless.webp", alpha, lossless=True)
save("animation.webp", colours, save_all=True, append_images=[colours.rotate(180)])
save("colour.heic", colours, quality=40)
write("exif", "little", block.removeprefix(b"Exif\0\0"))
big = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0"
write("exif", "big", big)
write("color_profile", "sRGB", profile)
write("color_profile", "xyz", ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes())
write("color_profile", "lab", ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes())
