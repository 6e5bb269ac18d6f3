"""Checks that no text uses a word that the glossary retired. Usage: check_words.py FILE..."""

import pathlib
import re
import sys

rules, allowed = [], []
for line in (pathlib.Path(__file__).parent / "retired-words.txt").read_text().splitlines():
    if not line or line.startswith("#"):
        continue
    if line.startswith("allow\t"):
        _, path, pattern = line.split("\t")
        allowed.append((path, re.compile(pattern)))
    else:
        pattern, term, *path = line.split("\t")
        rules.append((re.compile(pattern, re.IGNORECASE), term, re.compile(path[0] if path else "")))

found = 0
for path in sys.argv[1:]:
    try:
        lines = pathlib.Path(path).read_text().splitlines()
    except UnicodeDecodeError:
        continue  # A binary fixture.
    exceptions = [pattern for file, pattern in allowed if file in ("*", path)]
    applicable = [(pattern, term) for pattern, term, paths in rules if paths.search(path)]
    for number, line in enumerate(lines, 1):
        if any(pattern.search(line) for pattern in exceptions):
            continue
        for pattern, term in applicable:
            for match in pattern.finditer(line):
                print(f'{path}:{number}: "{match.group()}" is retired. Use: {term}')
                found += 1
if found:
    sys.exit(f"{found} retired words. See lint/retired-words.txt.")
