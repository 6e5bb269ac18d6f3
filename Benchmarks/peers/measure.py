"""What the peers' scripts share: arguments, timing, and the JSON line of a measurement."""

import argparse
import json
import os
import resource
import statistics
import sys
import time

# How a script says that the peer is not installed (EX_UNAVAILABLE).
UNAVAILABLE = 69


def arguments(description, peers):
    """Reads PEER SUITE CASE, and has the numerical libraries use as many threads as are asked for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("peer", choices=peers)
    parser.add_argument("suite", choices=["train", "predict", "load", "layers", "data"])
    parser.add_argument("case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--data", help="the folder of photos that the suite data reads")
    options = parser.parse_args()
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{library}_NUM_THREADS"] = str(options.threads)
    return options


def missing(error):
    """Says that the peer is not installed, and ends."""
    print(f"{error.name} is not installed", file=sys.stderr)
    sys.exit(UNAVAILABLE)


def measure(options, step, unit, work=1.0, batch=1, version=""):
    """Times `step` as `imprint bench` does, and prints the line. `work` is what a step does, in units of a rate."""
    for _ in range(2):
        step()
    times = []
    start = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < options.seconds:
        before = time.perf_counter()
        step()
        times.append(time.perf_counter() - before)
    factor = {"ms": 1e3, "µs": 1e6}.get(unit)
    values = [t * factor for t in times] if factor else [work / t for t in times]
    line = {
        "peer": options.peer, "version": version, "bench": options.suite, "case": options.case,
        "threads": options.threads, "median": statistics.median(values), "min": min(values), "max": max(values),
        "unit": unit, "batch": batch, "milliseconds": 1e3 * statistics.median(times),
        # In kilobytes on Linux, in bytes on macOS.
        "peakMemory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }
    print(json.dumps(line, ensure_ascii=False), flush=True)
