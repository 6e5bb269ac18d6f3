"""Checks a software bill of materials: check_sbom.py SBOM ROOT

It must be valid CycloneDX 1.6, its licences must be SPDX expressions, every reference must exist, and the files in ROOT must have its
hashes. It must list all files in ROOT/lib/*.so.*, if ROOT is an unpacked archive.
"""

import hashlib
import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.spdx import is_expression
from cyclonedx.validation.json import JsonStrictValidator

text, root = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
problems = []
if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
    problems.append(f"is not valid: {str(error).splitlines()[0]}")
bom = json.loads(text)


def components(parent):
    for component in parent.get("components", []):
        yield component
        yield from components(component)


files, references = set(), {bom["metadata"]["component"]["bom-ref"]}
for component in components(bom):
    references.add(component["bom-ref"])
    for licence in component.get("licenses", []):
        if not is_expression(licence["expression"]):
            problems.append(f"{component['name']}: {licence['expression']} is not an SPDX expression")
    if component["type"] == "file":
        files.add(component["name"])
        found = hashlib.sha256((root / component["name"]).read_bytes()).hexdigest()
        if found != component["hashes"][0]["content"]:
            problems.append(f"{component['name']}: has the SHA-256 {found}, expected {component['hashes'][0]['content']}")
for dependency in bom["dependencies"]:
    for name in [dependency["ref"], *dependency.get("dependsOn", [])]:
        if name not in references:
            problems.append(f"{name}: is a dependency, but not a component")
if (root / "bin/imprint").is_file() and (root / "lib").is_dir() and not (root / "etc").exists():
    problems += [
        f"{file.name}: is not listed" for file in (root / "lib").iterdir() if f"lib/{file.name}" not in files
    ]  # fmt: skip
if not any(name.endswith("bin/imprint") for name in files):
    problems.append("does not list the program")
for problem in problems:
    print(f"{sys.argv[1]}: {problem}")
print(f"{len(references)} components, {len(files)} files, {len(problems)} problems")
sys.exit(bool(problems))
