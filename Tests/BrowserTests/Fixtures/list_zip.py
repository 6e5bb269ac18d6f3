"""Prints the contents of a ZIP archive of the studio as JSON.

    python3 list_zip.py FILE

Prints {"names": [...], "damaged": null, "list": [...], "jpegs": 2}.
"""

import json
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as archive:
    names = archive.namelist()
    print(json.dumps({
        "names": names, "damaged": archive.testzip(), "list": json.loads(archive.read("pictures.json")),
        "jpegs": sum(archive.read(name)[:3] == b"\xff\xd8\xff" for name in names),
    }))
