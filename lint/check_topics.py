"""Checks that the topics of each module's landing page list all public symbols. Usage: check_topics.py DOCCARCHIVE..."""

import json
import pathlib
import sys

status = 0
for archive in map(pathlib.Path, sys.argv[1:]):
    module = archive.stem
    page = json.loads((archive / "data/documentation" / f"{module.lower()}.json").read_text())
    # DocC generates a section for the symbols that the page does not list.
    missing = [
        page["references"][identifier]["title"]
        for section in page["topicSections"]
        if section.get("generated")
        for identifier in section["identifiers"]
    ]
    if missing:
        catalog = f"Sources/{module}/{module}.docc/{module}.md"
        print(f"{catalog}: its topics lack {', '.join(missing)}. Add each to the group of its task.")
        status = 1
sys.exit(status)
