"""Creates small ICC profiles (version 2, and parametric curves of version 4) without an ICC library."""

import struct

D50 = (0.9642, 1.0, 0.8249)
PRIMARIES = {  # adapted to D50: X, Y, Z of red, green, blue
    "sRGB": ((0.4361, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141)),
    "Display P3": ((0.5151, 0.2412, -0.0011), (0.2920, 0.6922, 0.0419), (0.1571, 0.0666, 0.7841)),
    "Adobe RGB": ((0.6097, 0.3111, 0.0195), (0.2053, 0.6257, 0.0609), (0.1492, 0.0632, 0.7446)),
}


def fixed(number):
    return struct.pack(">i", round(number * 65536))


def xyz(values):
    return b"XYZ \0\0\0\0" + b"".join(map(fixed, values))


def text(words):
    data = words.encode() + b"\0"
    return b"desc\0\0\0\0" + struct.pack(">I", len(data)) + data + bytes(4 + 4 + 2 + 1 + 67)


def gamma(exponent):
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(exponent * 256))


def srgb_curve():
    return b"para\0\0\0\0" + struct.pack(">HH", 3, 0) + b"".join(
        map(fixed, (2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045)))  # fmt: skip


def profile(kind, space, connection, tags, version=2):
    """Returns a profile: `kind` is its class ("mntr", "prtr"), `connection` the connection space ("XYZ ", "Lab ")."""
    start = 128 + 4 + 12 * len(tags)
    table, data = struct.pack(">I", len(tags)), b""
    for signature, content in tags.items():
        table += signature.encode() + struct.pack(">II", start + len(data), len(content))
        data += content + bytes(-len(content) % 4)
    header = struct.pack(">I4sI", start + len(data), b"test", version << 24)
    header += (kind + space + connection).encode() + struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp"
    header += bytes(68 - len(header)) + b"".join(map(fixed, D50))
    return header + bytes(128 - len(header)) + table + data


def rgb(name, curve=None, extra=0):
    """Returns a matrix profile; `extra` bytes make it longer than a JPEG segment."""
    red, green, blue = map(xyz, PRIMARIES[name])
    curve = curve or srgb_curve()
    tags = {"desc": text(name), "wtpt": xyz(D50), "rXYZ": red, "gXYZ": green, "bXYZ": blue,
            "rTRC": curve, "gTRC": curve, "bTRC": curve}  # fmt: skip
    if extra:
        tags["xtra"] = b"data" + bytes(extra)
    return profile("mntr", "RGB ", "XYZ ", tags, version=4)


def grey(exponent):
    return profile("mntr", "GRAY", "XYZ ", {"desc": text("Grey"), "wtpt": xyz(D50), "kTRC": gamma(exponent)})


def cmyk():
    """Returns the profile of a printer with dull inks: a 2x2x2x2 table whose 16 corners are L*a*b* colours."""
    inks = [(60, -35, -45), (50, 70, 0), (90, -5, 85)]
    corners = b""
    for corner in range(16):
        used = [ink for bit, ink in enumerate(inks) if corner >> (3 - bit) & 1]
        lightness, a, b = 95.0, 0.0, 0.0
        for ink in used:
            lightness, a, b = lightness * ink[0] / 95, a + ink[1] / len(used), b + ink[2] / len(used)
        if corner & 1:
            lightness, a, b = lightness * 0.15, a * 0.2, b * 0.2
        corners += bytes((round(lightness * 2.55), round(a) + 128, round(b) + 128))
    identity = b"".join(map(fixed, (1, 0, 0, 0, 1, 0, 0, 0, 1)))
    straight = bytes(range(256))
    table = b"mft1\0\0\0\0" + bytes((4, 3, 2, 0)) + identity + straight * 4 + corners + straight * 3
    return profile("prtr", "CMYK", "Lab ", {"desc": text("Inks"), "wtpt": xyz(D50), "A2B0": table})
