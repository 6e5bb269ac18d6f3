"""Code shared by the scripts of the peers: arguments, timing, and JSON output."""

import argparse
import json
import os
import resource
import statistics
import sys
import time

from cases import PRECISIONS

# The exit code of a script whose peer is not installed (EX_UNAVAILABLE).
UNAVAILABLE = 69


def arguments(description, peers):
    """Parses the arguments, and sets the number of threads of the numerical libraries."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("peer", choices=peers)
    parser.add_argument("suite", choices=["train", "predict", "load", "layers", "data"])
    parser.add_argument("case")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--precision", choices=["float32", *PRECISIONS], default="float32")
    parser.add_argument("--data", help="the folder of photos for the suite data")
    options = parser.parse_args()
    if options.precision != "float32" and (options.peer not in PRECISIONS[options.precision] or options.suite != "predict"):
        parser.error(f"{options.peer} does not measure {options.suite} in {options.precision}")
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ[f"{library}_NUM_THREADS"] = str(options.threads)
    return options


def missing(error):
    """Reports that the peer is not installed, and exits."""
    print(f"{error.name} is not installed", file=sys.stderr)
    sys.exit(UNAVAILABLE)


def measure(options, step, unit, work=1.0, batch=1, version=""):
    """Times `step` as `imprint bench` does, and prints the result. `work` is the work of a step, for rates per second."""
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
