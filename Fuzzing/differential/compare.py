"""Compares Imprint's reader of safetensors files with the reference implementation on mutated files.

    swift build --product SafetensorsReader
    python3 Fuzzing/differential/compare.py .build/debug/SafetensorsReader --mutants 100000 --seed 1

Both read the same files. Their verdicts must agree, and so must names, types, shapes, offsets, bytes and metadata of the files that both
accept. Imprint may reject a file that the reference accepts only by a rule of RULES, which docs/reference/model-file.md lists, and never
the other way round. Exits with status 1 if there is another difference, and writes these files to the folder --keep.

Needs: pip install safetensors numpy (written against safetensors 0.8).
"""

import argparse
import collections
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unicodedata

from safetensors import SafetensorError, deserialize, safe_open

from mutants import ELEMENT_SIZES, OTHER_TYPES, mutant

BATCH = 5000


def reference(path, content):
    """Returns the digest of the content of a file, or the error of the reference implementation."""
    try:
        tensors = dict(deserialize(content))
    except SafetensorError as error:
        tensors = error
    try:
        with safe_open(path, framework="numpy") as file:
            metadata, names = file.metadata() or {}, file.offset_keys()
    except (SafetensorError, OSError, ValueError) as error:
        return None, str(error if isinstance(tensors, dict) else tensors)
    if not isinstance(tensors, dict):
        raise RuntimeError(f"{path}: safe_open accepts the file, but deserialize does not: {tensors}")
    lines = [f"m {key.encode().hex()} {value.encode().hex()}" for key, value in metadata.items()]
    # The reference does not reveal offsets, but tensors follow each other without gaps.
    begin = 0
    for name in names:
        tensor = tensors[name]
        data = bytes(tensor["data"])
        shape = ",".join(map(str, tensor["shape"]))
        lines.append(
            f"t {name.encode().hex()} {tensor['dtype']} [{shape}] {begin} {begin + len(data)} {hashlib.sha256(data).hexdigest()}"
        )
        begin += len(data)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest(), None


def members(content):
    """Returns the pairs of a header that the reference accepts; objects are lists of pairs in a tuple, and keys can repeat."""
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")], object_pairs_hook=tuple)


def fields(content, name):
    """Returns the values of a field in all tensors."""
    tensors = [value for key, value in members(content) if key != "__metadata__" and isinstance(value, tuple)]
    return [value for tensor in tensors for key, value in tensor if key == name]


def repeats(value):
    """Whether an object in a value contains two keys that Unicode regards as equivalent."""
    if not isinstance(value, tuple):
        return False
    keys = [unicodedata.normalize("NFC", key) for key, _ in value]
    return len(set(keys)) < len(keys) or any(repeats(inner) for _, inner in value)


def has_unknown_field(content):
    tensors = [value for key, value in members(content) if key != "__metadata__" and isinstance(value, tuple)]
    return any(key not in ("dtype", "shape", "data_offsets") for tensor in tensors for key, _ in tensor)


def overflows(content):
    """Whether the first sizes of a shape, or all of them and the size of an element, have a product of 2^63 or more."""
    tensors = [dict(value) for key, value in members(content) if key != "__metadata__" and isinstance(value, tuple)]
    for tensor in tensors:
        product = 1
        for factor in [*tensor["shape"], ELEMENT_SIZES.get(tensor["dtype"], 1)]:
            product *= factor
            if product >= 2**63:
                return True
    return False


# The rules by which Imprint rejects files that the reference accepts: the problem that Imprint prints, a part of its message, and whether
# a file violates the rule.
RULES = {
    "a key occurs twice": ("duplicateKey", "", lambda content: repeats(members(content))),
    "white space before the header": ("malformedHeader", "expected { at byte 0 ", lambda content: content[8:9].isspace()),
    "an unknown field in a tensor": ("malformedHeader", "expected dtype, shape or data_offsets, not", has_unknown_field),
    "a tensor that is a list": (
        "malformedHeader", "expected { at byte", lambda content: any(isinstance(value, list) for _, value in members(content)),
    ),
    "metadata that is null": (
        "malformedHeader", "expected { at byte", lambda content: ("__metadata__", None) in members(content),
    ),
    "a type that is an object": (
        "malformedHeader", 'expected " at byte', lambda content: any(isinstance(value, tuple) for value in fields(content, "dtype")),
    ),
    "an element type that Imprint does not read": (
        "unknownElementType", "", lambda content: any(value in OTHER_TYPES for value in fields(content, "dtype")),
    ),
    "more than 64 sizes": (
        "malformedHeader", "at most 64 numbers", lambda content: any(len(value) > 64 for value in fields(content, "shape")),
    ),
    "a number of 2^63 or more": (
        "malformedHeader", "a number below 2^63", lambda content: any(size >= 2**63 for value in fields(content, "shape") for size in value),
    ),
    "a product of sizes of 2^63 or more": ("shapeOverflows", "", overflows),
}  # fmt: skip


def rule(problem, message, content):
    """Returns the rule that a file violates according to Imprint's message; None if there is none."""
    for name, (expected, text, is_violated) in RULES.items():
        if problem == expected and text in message and is_violated(content):
            return name
    return None


def ours(reader, paths):
    """Returns the fields of the reader's line for each file."""
    result = subprocess.run([reader], input=("\n".join(paths) + "\n").encode(), capture_output=True)
    lines = result.stdout.decode().split("\n")[:-1]
    if result.returncode != 0 or len(lines) != len(paths):
        errors = result.stderr.decode(errors="replace")
        sys.exit(f"{reader} exited with status {result.returncode} after {len(lines)} of {len(paths)} files:\n{errors}")
    return [line.split("\t", 2) for line in lines]


def compare(line, content, path):
    """Returns a verdict that both share, a rule, or a difference and whether it is one."""
    digest, error = reference(path, content)
    if line[0] == "+":
        if digest is None:
            return f"only Imprint accepts it; the reference: {error}", True
        return ("accepted by both", False) if digest == line[1] else ("the contents differ", True)
    if digest is None:
        return "rejected by both", False
    name = rule(line[1], line[2], content)
    return (f"rejected by Imprint only: {name}", False) if name else (f"only the reference accepts it; Imprint: {line[2]}", True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("reader", type=pathlib.Path, help="the program SafetensorsReader")
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="the folder for files with differences")
    options = parser.parse_args()
    counts, mutations, differences = collections.Counter(), collections.Counter(), 0
    memory = "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        for start in range(0, options.mutants, BATCH):
            indices = range(start, min(start + BATCH, options.mutants))
            files = [mutant(options.seed, index) for index in indices]
            paths = [f"{folder}/{index - start}" for index in indices]
            for path, (content, _) in zip(paths, files):
                pathlib.Path(path).write_bytes(content)
            for index, path, (content, names), line in zip(indices, paths, files, ours(options.reader.resolve(), paths)):
                verdict, is_difference = compare(line, content, path)
                counts["DIFFERENCE" if is_difference else verdict] += 1
                mutations.update(set(names))
                if is_difference:
                    differences += 1
                    if differences <= 10:
                        print(f"mutant {index} ({', '.join(names)}): {verdict}", file=sys.stderr)
                    if options.keep:
                        options.keep.mkdir(parents=True, exist_ok=True)
                        (options.keep / f"{options.seed}-{index}.safetensors").write_bytes(content)
    for verdict, count in sorted(counts.items()):
        print(f"{count:7} {verdict}")
    print(f"{differences} differences in {options.mutants} mutants (seed {options.seed}, {len(mutations)} kinds of mutations)")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
