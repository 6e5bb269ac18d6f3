"""Compares the output of `imprint bench train --json` with thresholds.json: allocations per step, and peak memory.

    ./run bench --check
"""

import json
import pathlib
import sys

THRESHOLDS = pathlib.Path(__file__).resolve().parent / "thresholds.json"
METRICS = {"allocations": "allocations per step", "peakMemory": "bytes of peak memory"}


def name(line):
    precision = f" in {line['precision']}" if "precision" in line else ""
    return f"{line['case']}{precision} on {line['threads']} thread{'s' if line['threads'] > 1 else ''}"


def problems(thresholds, lines):
    """Yields a message for each metric that exceeds its threshold, was not measured, or has no threshold."""
    for case in sorted(thresholds.keys() - {line["case"] for line in lines}):
        yield f"{case} has thresholds but was not measured; correct its name in {THRESHOLDS.name}."
    for line in lines:
        if line["case"] not in thresholds:
            yield f"{name(line)} has no thresholds; add them to {THRESHOLDS.name}."
            continue
        for metric, description in METRICS.items():
            found, allowed = line.get(metric), thresholds[line["case"]][metric]
            if found is None:
                yield f"{name(line)}: {description} are not measured on this system, expected at most {allowed}."
            elif found > allowed:
                yield f"{name(line)}: found {found} {description}, expected at most {allowed}."


def main():
    lines = []
    for text in sys.stdin:
        line = json.loads(text)
        lines.append(line)
        print(f"{name(line)}: " + ", ".join(f"{line.get(key)} {words}" for key, words in METRICS.items()), flush=True)
    found = list(problems(json.loads(THRESHOLDS.read_text()), lines))
    print("\n".join(found or ["All metrics are within the thresholds."]), file=sys.stderr)
    sys.exit(1 if found else 0)


main()
