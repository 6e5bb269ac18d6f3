"""Prints the contents of a ZIP archive of the studio as JSON.

    python3 list_zip.py FILE

Prints {"names": [...], "damaged": null, "list": [...], "jpegs": 2}.
"""

import json
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as archive:
    names = archive.namelist()
    listing = next(name for name in names if name.endswith(".json"))
    print(json.dumps({
        "names": names, "damaged": archive.testzip(), "list": json.loads(archive.read(listing)),
        "jpegs": sum(archive.read(name)[:3] == b"\xff\xd8\xff" for name in names),
    }))
