"""Classifies a stream of many paths with `imprint classify --files-from -`, and checks order, errors and memory.

    python3 Benchmarks/streams/measure.py MODEL PHOTOS [--lines 1000000] [--threads 2] [--shards 4] [--imprint .build/release/imprint]

The photos of the folder PHOTOS are sent again and again; every thousandth path does not exist. The script checks that there is one JSON line for
each path, in the order of the paths, and with an error exactly for the missing ones. After the first tenth of the lines, the resident memory must
not grow by more than a tenth or 16 MB, whichever is larger. Then it classifies the first hundredth of the paths in shards. It kills the second shard and runs it
again, and checks that the lines of all shards together are the same as before. Prints the time and the memory, and exits with 1 if a check fails.
It needs Linux.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ERROR_INTERVAL = 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--imprint", default=".build/release/imprint")
    args = parser.parse_args()
    if args.shards < 2:
        sys.exit(f"--shards is {args.shards}, expected at least 2.")
    photos = sorted(str(file) for file in args.photos.rglob("*") if file.suffix in {".jpg", ".png", ".webp"})
    if not photos:
        sys.exit(f"{args.photos} contains no photos, expected at least one.")
    beginning = measure_stream(args, photos)
    check_shards(args, photos, beginning)


def paths(photos, count):
    for index, photo in zip(range(count), itertools.cycle(photos)):
        yield f"missing-{index}.jpg" if index % ERROR_INTERVAL == ERROR_INTERVAL - 1 else photo


def command(args, *options):
    return [args.imprint, "classify", args.model, "--files-from", *options, "--json", "--threads", str(args.threads), "--quiet"]


def resident_megabytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure_stream(args, photos):
    """Classifies all paths, and returns the first hundredth of the lines."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command(args, "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        threading.Thread(target=write, args=[process.stdin, paths(photos, args.lines)], daemon=True).start()
        memory, beginning, failures = [], [], 0
        try:
            for index, path in enumerate(paths(photos, args.lines)):
                line = process.stdout.readline()
                result = json.loads(line or "{}")
                is_error = "error" in result
                if result.get("file") != path or is_error != path.startswith("missing-"):
                    errors.seek(0)
                    sys.exit(f"Line {index + 1} is {line!r}, expected the result of {path}. Errors:\n{errors.read()[-2000:]}")
                failures += is_error
                if index < args.lines // 100:
                    beginning.append(line)
                if index % 10_000 == 0:
                    memory.append(resident_megabytes(process.pid))
            rest = process.stdout.read()
            status = process.wait()
        finally:
            process.kill()
        errors.seek(0)
        reported = errors.read().splitlines()
    seconds = time.monotonic() - start
    if rest or status:
        sys.exit(f"The command ended with status {status} and further output, expected status 0 and {args.lines} lines.")
    summary = f"{failures} of {args.lines} photos could not be processed."
    if failures and reported[-1] != summary:
        sys.exit(f"The last line on standard error is {reported[-1]!r}, expected {summary!r}.")
    warm, most = memory[len(memory) // 10], max(memory[len(memory) // 10 :])
    print(f"{args.lines} lines in order, {failures} of them errors, in {seconds:.0f} s: {args.lines / seconds:.0f} photos/s.")
    print(f"Resident memory after a tenth of the lines: {warm:.1f} MB; maximum afterwards: {most:.1f} MB.")
    if most > max(1.1 * warm, warm + 16):
        sys.exit("The memory grew.")
    return beginning


def write(stream, lines):
    try:
        for line in lines:
            stream.write(line + "\n")
        stream.close()
    except BrokenPipeError:
        pass  # The process has ended, and the reader reports it.


def check_shards(args, photos, expected):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "paths.txt"
        file.write_text("".join(path + "\n" for path in paths(photos, len(expected))))

        def start(shard):
            options = [str(file), "--shard", f"{shard}/{args.shards}"]
            return subprocess.Popen(command(args, *options), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

        killed = start(2)
        killed.stdout.readline()
        killed.kill()
        killed.communicate()
        shards = [start(shard).communicate()[0].splitlines(keepends=True) for shard in range(1, args.shards + 1)]
    lines = [line for row in itertools.zip_longest(*shards) for line in row if line is not None]
    if lines != expected:
        sys.exit(f"The lines of {args.shards} shards differ from the lines of one process.")
    print(f"{args.shards} shards, one of them killed and run again, have the same {len(lines)} lines as one process.")


if __name__ == "__main__":
    main()
