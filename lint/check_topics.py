"""Checks that the pages of DocC catalogs list all public symbols of their module or type. Usage: check_topics.py DOCCARCHIVE..."""

import json
import pathlib
import sys

incomplete = 0
for archive in map(pathlib.Path, sys.argv[1:]):
    module = archive.stem
    pages = archive / "data/documentation"
    for page in [pages / f"{module.lower()}.json", *sorted(pages.rglob("*/*.json"))]:
        content = json.loads(page.read_text())
        sections = content.get("topicSections", [])
        # DocC generates sections for the symbols that a page does not list. Most types have only generated sections.
        sections = [section for section in sections if section.get("title") != "Default Implementations"]
        generated = [section for section in sections if section.get("generated")]
        if not generated or (len(generated) == len(sections) and page.parent != pages):
            continue
        names = [content["references"][name]["title"] for section in generated for name in section["identifiers"]]
        title = content["metadata"]["title"]
        print(f"Sources/{module}/{module}.docc/{title}.md: the topics lack {', '.join(names)}. Add each to a group.")
        incomplete += 1
sys.exit(1 if incomplete else 0)
