"""Writes a ZIP archive of folders with photos as another program would, or one that the studio must reject.

    python3 make_zip.py CASE FILE.zip PHOTO...

The case "folders" has the folders "cup" and "pear" in a folder, deflated, with files that are not examples.
"""

import struct
import sys
import zipfile

ENTRY, END = b"PK\1\2", b"PK\5\6"  # The signatures of an entry of the list of files, and of the end.


def write(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def change(path, signature, offset, layout, value):
    """Changes a number in the last record with a signature."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    struct.pack_into(layout, content, content.rindex(signature) + offset, value)
    with open(path, "wb") as file:
        file.write(content)


def main():
    case, path = sys.argv[1:3]
    photos = [open(name, "rb").read() for name in sys.argv[3:]]
    files = {f"cup/{index}.jpg": photo for index, photo in enumerate(photos)}
    if case == "folders":
        files = {"fruit/": b"", "fruit/note.txt": b"note", "__MACOSX/fruit/pear/._1.jpg": b"hidden"}
        files |= {f"fruit/{'pear' if index % 2 else 'cup'}/{index}.jpg": photo for index, photo in enumerate(photos)}
    elif case == "path":
        files["../cup/1.jpg"] = photos[0]
    elif case == "large":
        files |= {f"pear/{index}.jpg": bytes(2 ** 22) for index in range(17)}
    elif case == "more":
        files["pear/1.jpg"] = bytes(2 ** 26)
    elif case == "root":
        files = {"1.jpg": photos[0], "note.txt": b"note"}
    elif case == "classes":
        files = {f"{index}/1.jpg": photos[0] for index in range(51)}
    elif case == "list":
        files["imprint-examples.json"] = b'[{"folder": "cup"}, null]'
    elif case == "name":
        files["cup/\u00e4.jpg"] = photos[0]

    write(path, files, zipfile.ZIP_BZIP2 if case == "method" else zipfile.ZIP_DEFLATED)
    if case == "encrypted":
        change(path, ENTRY, 8, "<H", 1)
    elif case == "size":
        change(path, ENTRY, 24, "<I", 0xfffffffe)
    elif case == "more":
        # The file has more bytes than the archive lists.
        change(path, ENTRY, 24, "<I", 1000)
    elif case == "checksum":
        change(path, ENTRY, 16, "<I", 0)
    elif case == "offset":
        change(path, ENTRY, 42, "<I", 0x7fffffff)
    elif case == "count":
        change(path, END, 10, "<H", 0xfffe)
    elif case == "list size":
        change(path, END, 12, "<I", 0x7fffffff)
    elif case == "ZIP64":
        change(path, END, 16, "<I", 0xffffffff)
    elif case == "name":
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write(content.replace("\u00e4".encode(), b"\x84\x84"))
    elif case in ("truncated", "empty", "text"):
        with open(path, "rb") as file:
            content = file.read()
        with open(path, "wb") as file:
            file.write({"truncated": content[:len(content) * 2 // 3], "empty": b"", "text": b"a text" * 20000}[case])


main()
