"""Finds the shared libraries of a program, and writes a JSON description of each, with its Debian package and its licence.

usage: libraries.py PROGRAM [--copy FOLDER]

With --copy, it copies the libraries into a folder, unchanged. Those of BASE stay on the system. In place of a library in "replaced" of
licences.json, it makes a library with the same functions, which only return NULL.
"""

import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

# The packages of the libraries that apt uses, so every Debian has them. A newer system has newer versions, and they are compatible.
BASE = {"libc6", "libgcc-s1", "libstdc++6"}
TABLE = json.loads((pathlib.Path(__file__).parent / "licences.json").read_text())


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(file):
    """The names of the libraries that a file needs directly."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "--dynamic", "--wide", file))


def owner(path):
    """The Debian package of a file. Some packages list files in /lib, which is a link to /usr/lib."""
    path = str(path)
    for name in (path, path.removeprefix("/usr"), f"/usr{path}"):
        found = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.split(":")[0]
    raise SystemExit(f"{path}: belongs to no Debian package, so its licence is unknown. Install the library with apt.")


def licence(package):
    """The SPDX expression of a package."""
    if package not in TABLE["debian"]:
        raise SystemExit(
            f"Packaging/licences.json: does not have {package}. Read /usr/share/doc/{package}/copyright, and add its SPDX expression."
        )
    return TABLE["debian"][package]


def describe(soname, path):
    file = path.resolve()
    package = owner(file)
    fields = ("Version", "source:Package", "source:Version")
    format = "\\t".join(f"${{{field}}}" for field in fields)
    version, source, source_version = output("dpkg-query", "--show", f"--showformat={format}\\n", package).split("\n")[0].split("\t")
    return {
        "soname": soname, "file": str(file), "package": package, "version": version, "source": source,
        "sourceVersion": source_version, "licence": licence(package), "needed": needed(file),
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "origin": "base" if package in BASE else "copied",
    }  # fmt: skip


def symbols(file, kind):
    return {line.split()[-1].split("@")[0] for line in output("nm", "--dynamic", kind, file).splitlines()}


def replace(library, users, target):
    """Makes a library with the functions of another one that its users call; they return NULL."""
    defined = symbols(library["file"], "--defined-only")
    names = sorted(defined & set().union(*(symbols(user, "--undefined-only") for user in users)))
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "empty.c"
        source.write_text("".join(f"void *{name}(void) {{ return 0; }}\n" for name in names))
        output(
            "clang", "-shared", "-Os", "-nostdlib", f"-Wl,-soname,{library['soname']}", "-Wl,--build-id=none", "-s",
            "-o", str(target), str(source),
        )  # fmt: skip
    library.update(
        origin="replaced", needed=[], functions=names, reason=TABLE["replaced"][library["package"]],
        sha256=hashlib.sha256(target.read_bytes()).hexdigest(),
    )  # fmt: skip


parser = argparse.ArgumentParser()
parser.add_argument("program", type=pathlib.Path)
parser.add_argument("--copy", type=pathlib.Path)
arguments = parser.parse_args()

paths = {}
for line in output("ldd", arguments.program).splitlines():
    if match := re.fullmatch(r"\s*(\S+) => (/\S+) \(.*\)", line):
        paths[match[1]] = pathlib.Path(match[2])
    elif "not found" in line:
        raise SystemExit(f"{arguments.program}: {line.strip()}")

# A replaced library needs no others, so the closure is computed here and not by ldd.
libraries, users, waiting = {}, {}, [(arguments.program, needed(arguments.program))]
while waiting:
    user, names = waiting.pop(0)
    for soname in names:
        if soname not in paths:  # The dynamic linker.
            continue
        users.setdefault(soname, []).append(user)
        if soname in libraries:
            continue
        library = libraries[soname] = describe(soname, paths[soname])
        if arguments.copy and library["package"] in TABLE["replaced"]:
            library["needed"] = []
        # The libraries of the base are complete on every system.
        if library["origin"] != "base":
            waiting.append((library["file"], library["needed"]))

if arguments.copy:
    arguments.copy.mkdir(parents=True, exist_ok=True)
    for soname, library in libraries.items():
        target = arguments.copy / soname
        if library["package"] in TABLE["replaced"]:
            replace(library, users[soname], target)
        elif library["origin"] == "copied":
            if re.fullmatch(r"A?GPL-\S+", library["licence"]):
                raise SystemExit(
                    f"{soname}: has the licence {library['licence']}, which would apply to the whole archive. "
                    'Build without it, or add it to "replaced" in Packaging/licences.json if no function of it is called.'
                )
            shutil.copyfile(library["file"], target)
        else:
            continue
        target.chmod(0o644)

direct = needed(arguments.program)
for library in libraries.values():
    library["direct"] = library["soname"] in direct
    library["needed"] = [name for name in library["needed"] if name in libraries]
print(json.dumps(sorted(libraries.values(), key=lambda library: library["soname"]), indent=4))
