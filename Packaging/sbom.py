"""Writes a software bill of materials in CycloneDX 1.6 JSON to standard output.

The same package has the same bytes: the time is SOURCE_DATE_EPOCH, and the serial number is derived from the content.
"""

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import urllib.parse
import uuid

LICENCES = json.loads((pathlib.Path(__file__).parent / "licences.json").read_text())

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--root", type=pathlib.Path, required=True, help="the folder of the files of the package")
parser.add_argument("--libraries", type=pathlib.Path, required=True, help="the output of libraries.py")
parser.add_argument("--packages", type=pathlib.Path, required=True, help="the output of swift package show-dependencies")
parser.add_argument("--resolved", type=pathlib.Path, required=True, help="Package.resolved")
parser.add_argument("--version", required=True, help="the version of the package")
parser.add_argument("--commit", required=True)
parser.add_argument("--swift", required=True, help="the version of Swift")
parser.add_argument("--system", required=True, help="the system that the package was built on, such as debian-12")
parser.add_argument("--architecture", required=True, help="the architecture in the terms of Debian, such as amd64")
parser.add_argument("--optional", nargs="*", default=[], help="Debian packages that are loaded at run time")
arguments = parser.parse_args()


def licensed(expression):
    return [{"expression": expression}]


def hashes(file):
    return [{"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}]


def swift_components():
    """The Swift packages that are linked statically, and the dependencies between them."""
    pins = {pin["identity"]: pin["state"] for pin in json.loads(arguments.resolved.read_text())["pins"]}
    components, dependencies = [], {}

    def visit(package):
        references = []
        for dependency in package["dependencies"]:
            identity, version = dependency["identity"], dependency["version"]
            url = dependency["url"].removesuffix(".git")
            reference = f"pkg:swift/{url.removeprefix('https://')}@{version}"
            references.append(reference)
            if reference in dependencies:
                continue
            if identity not in LICENCES["swift"]:
                raise SystemExit(f"Packaging/licences.json: does not have the Swift package {identity}. Add its SPDX expression.")
            dependencies[reference] = []
            components.append(
                {
                    "type": "library", "bom-ref": reference, "name": identity, "version": version, "scope": "required",
                    "licenses": licensed(LICENCES["swift"][identity]), "purl": reference,
                    "externalReferences": [{"type": "vcs", "url": url}],
                    "properties": [
                        {"name": "imprint:linkage", "value": "static"},
                        {"name": "imprint:revision", "value": pins[identity]["revision"]},
                    ],
                }  # fmt: skip
            )
            dependencies[reference] = visit(dependency)
        return sorted(references)

    direct = visit(json.loads(arguments.packages.read_text()))
    runtime = f"swift-runtime@{arguments.swift}"
    components.append(
        {
            "type": "library", "bom-ref": runtime, "name": "swift-runtime", "version": arguments.swift, "scope": "required",
            "description": "The standard library of Swift, Dispatch and Foundation with its copy of ICU",
            "licenses": licensed(LICENCES["swift"]["swift-runtime"]),
            "externalReferences": [{"type": "website", "url": "https://www.swift.org"}],
            "properties": [{"name": "imprint:linkage", "value": "static"}],
        }  # fmt: skip
    )
    dependencies[runtime] = []
    return components, dependencies, direct + [runtime]


def debian_components():
    """The Debian packages of the shared libraries, and the dependencies between them."""
    packages, owners, dependencies = {}, {}, {}
    libraries = json.loads(arguments.libraries.read_text())
    for library in libraries:
        name, version = library["package"], library["version"]
        distribution, architecture = arguments.system, arguments.architecture
        reference = (
            f"pkg:deb/debian/{urllib.parse.quote(name)}@{urllib.parse.quote(version)}?arch={architecture}&distro={distribution}"
        )
        if library["origin"] == "replaced":
            reference = f"replacement-of-{library['soname']}"
        owners[library["soname"]] = reference
        dependencies.setdefault(reference, set())
        if library["origin"] == "replaced":
            component = {
                "type": "library", "bom-ref": reference, "name": library["soname"], "version": arguments.version, "scope": "required",
                "description": f"A replacement of {name}, whose functions return NULL: {library['reason']}.",
                "licenses": licensed("Apache-2.0"), "components": [],
            }  # fmt: skip
        else:
            component = {
                "type": "library", "bom-ref": reference, "name": name, "version": version, "scope": "required",
                "licenses": licensed(library["licence"]), "purl": reference,
                "properties": [
                    {"name": "imprint:linkage", "value": "shared"},
                    {"name": "imprint:source", "value": f"{library['source']} {library['sourceVersion']}"},
                ],
                "components": [],
            }  # fmt: skip
        component = packages.setdefault(reference, component)
        file = arguments.root / "lib" / library["soname"]
        if file.exists():
            component["components"].append(
                {
                    "type": "file", "bom-ref": f"lib/{library['soname']}", "name": f"lib/{library['soname']}", "hashes": hashes(file)
                }  # fmt: skip
            )
    for library in libraries:
        references = {owners[name] for name in library["needed"]} - {owners[library["soname"]]}
        dependencies[owners[library["soname"]]] |= references
    for component in packages.values():
        if not component["components"]:
            del component["components"]
    direct = sorted({owners[library["soname"]] for library in libraries if library["direct"]})
    for name in arguments.optional:
        reference = f"pkg:deb/debian/{name}?distro={arguments.system}"
        if any(component["name"] == name for component in packages.values()):
            continue
        packages[reference] = {
            "type": "library", "bom-ref": reference, "name": name, "scope": "optional",
            "description": "Loaded at run time if it is installed", "licenses": licensed(LICENCES["debian"][name]),
            "purl": reference,
        }  # fmt: skip
        dependencies[reference] = set()
        direct.append(reference)
    components = [packages[reference] for reference in sorted(packages)]
    return components, {reference: sorted(names) for reference, names in dependencies.items()}, direct


program = arguments.root / "bin/imprint"
if not program.exists():
    program = arguments.root / "usr/bin/imprint"
swift, swift_dependencies, swift_direct = swift_components()
debian, debian_dependencies, debian_direct = debian_components()
reference = f"imprint@{arguments.version}"
executable = str(program.relative_to(arguments.root))
dependencies = {reference: [executable], executable: sorted(swift_direct + debian_direct)} | swift_dependencies | debian_dependencies
bom = {
    "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "metadata": {
        "timestamp": datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycles": [{"phase": "build"}],
        "tools": {"components": [{"type": "application", "name": "swift", "version": arguments.swift}]},
        "component": {
            "type": "application", "bom-ref": reference, "name": "imprint", "version": arguments.version,
            "description": "Trains, personalizes and runs image classifiers and logo detectors",
            "licenses": licensed("Apache-2.0"),
            "properties": [
                {"name": "imprint:commit", "value": arguments.commit},
                {"name": "imprint:system", "value": arguments.system},
                {"name": "imprint:architecture", "value": arguments.architecture},
            ],
        },
    },
    "components": [{"type": "file", "bom-ref": executable, "name": executable, "hashes": hashes(program)}] + swift + debian,
    "dependencies": [
        {"ref": name, "dependsOn": names} if names else {"ref": name} for name, names in sorted(dependencies.items())
    ],
}  # fmt: skip
content = json.dumps(bom, sort_keys=True).encode()
bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, hashlib.sha256(content).hexdigest())}"
print(json.dumps(bom, indent=2))
