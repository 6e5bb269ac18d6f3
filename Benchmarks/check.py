"""Holds the lines of `imprint bench train --json` against thresholds.json: allocations a step, and the peak of memory.

    ./run bench --check
"""

import json
import pathlib
import sys

THRESHOLDS = pathlib.Path(__file__).resolve().parent / "thresholds.json"
FIGURES = {"allocations": "allocations a step", "peakMemory": "bytes of memory at the peak"}


def place(line):
    return f"{line['case']} on {line['threads']} thread{'s' if line['threads'] > 1 else ''}"


def complaints(thresholds, lines):
    """A sentence for each figure that is above its threshold, was not measured, or has no threshold."""
    for case in sorted(thresholds.keys() - {line["case"] for line in lines}):
        yield f"{case} has thresholds but was not measured; correct its name in {THRESHOLDS.name}."
    for line in lines:
        if line["case"] not in thresholds:
            yield f"{place(line)} has no thresholds; add them to {THRESHOLDS.name}."
            continue
        for figure, words in FIGURES.items():
            found, allowed = line.get(figure), thresholds[line["case"]][figure]
            if found is None:
                yield f"{place(line)}: {words} are not counted on this system, {allowed} are allowed."
            elif found > allowed:
                yield f"{place(line)}: found {found} {words}, allowed are {allowed}."


def main():
    lines = []
    for text in sys.stdin:
        line = json.loads(text)
        lines.append(line)
        print(f"{place(line)}: " + ", ".join(f"{line.get(key)} {words}" for key, words in FIGURES.items()), flush=True)
    found = list(complaints(json.loads(THRESHOLDS.read_text()), lines))
    print("\n".join(found or ["All is within the thresholds."]), file=sys.stderr)
    sys.exit(1 if found else 0)


main()
