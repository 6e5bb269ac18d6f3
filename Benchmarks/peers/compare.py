"""Measures cases in Imprint and in other programs alternately, on the same cores, and compares the results.

    ./run bench --peers                            # training, prediction, loading and data
    ./run bench --peers train logonet-96           # a suite, or the cases whose names begin with a prefix
    ./run bench --peers conv3x3-64 --peer torch-tuned --rounds 5 --json
    ./run bench --peers mobilenet_v2.onnx          # an ONNX file, which Imprint imports first
    ./run bench --peers logo.imprint               # a detector, which Imprint exports to ONNX for the peers
    ./run bench --peers resnet-50 --precision int8 # predictions in int8, with peers that have it
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import cases
from measure import UNAVAILABLE

FOLDER = pathlib.Path(__file__).resolve().parent
SCRIPTS = {
    "torch": "torch_peer.py", "tensorflow": "tensorflow_peer.py", "pillow": "data_peer.py", "opencv": "data_peer.py"}
LOWER_IS_BETTER = ("ms", "µs")
# If other processes use more of a core than this, the measurement is not reliable.
BUSY = 0.1


def thread_count(count):
    return f"{count} thread" if count == 1 else f"{count} threads"


def note(text):
    print(text, file=sys.stderr, flush=True)


def physical_cores():
    """Returns one logical processor of each core that this process may use."""
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1))
    cores = {}
    for processor in sorted(os.sched_getaffinity(0)):
        siblings = pathlib.Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        cores.setdefault(siblings.read_text() if siblings.exists() else processor, processor)
    return list(cores.values())


def busy_seconds():
    """Returns the processor time of all processes; None if the system does not report it."""
    try:
        fields = pathlib.Path("/proc/stat").read_text().split()[1:9]
    except OSError:
        return None
    user, nice, system, _, _, interrupt, soft_interrupt, steal = map(int, fields)
    return (user + nice + system + interrupt + soft_interrupt + steal) / os.sysconf("SC_CLK_TCK")


def process_seconds():
    """Returns the processor time of this process and its children."""
    usages = [resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class Failure(Exception):
    """A program that is not installed, or that failed."""

    def __init__(self, reason, is_missing):
        super().__init__(reason)
        self.is_missing = is_missing


class Comparison:
    def __init__(self, options):
        self.options = options
        self.cores = physical_cores()
        self.versions = {}
        self.missing = []
        self.converted_files = {}

    def run(self, command, threads):
        """Runs a command on the first `threads` cores, and returns the JSON object that it printed."""
        cores = set(self.cores[:threads])
        pin = (lambda: os.sched_setaffinity(0, cores)) if hasattr(os, "sched_setaffinity") else None
        busy_before, process_before, start = busy_seconds(), process_seconds(), time.monotonic()
        process = subprocess.run(command, capture_output=True, text=True, preexec_fn=pin)
        if process.returncode:
            errors = process.stderr.strip().splitlines() or [f"exit code {process.returncode}"]
            is_missing = process.returncode == UNAVAILABLE
            raise Failure(errors[-1] if is_missing else "fails: " + "\n  ".join(errors[-5:]), is_missing)
        line = json.loads(process.stdout.splitlines()[-1])
        if busy_before is not None:
            others = busy_seconds() - busy_before - (process_seconds() - process_before)
            line["others"] = max(0.0, others / (time.monotonic() - start))
        return line

    def command(self, peer, suite, case, threads):
        options = ["--threads", str(threads), "--seconds", str(self.options.seconds)]
        options += ["--data", self.options.data] if suite == "data" else []
        options += ["--precision", self.options.precision] if suite == "predict" else []
        if peer == "imprint" and cases.is_file(case):
            model = case if cases.is_detector(case) else self.imported_model(case)
            return [self.options.imprint, "bench", suite, "--model", model, "--json", *options]
        if peer == "imprint":
            return [self.options.imprint, "bench", suite, "--case", case, "--json", *options]
        script = SCRIPTS.get(peer.partition("-")[0], "runtimes_peer.py")
        python = os.environ.get("IMPRINT_TENSORFLOW_PYTHON", sys.executable) if peer == "tensorflow" else sys.executable
        return [python, str(FOLDER / script), peer, suite, self.exported_model(case) if cases.is_detector(case) else case, *options]

    def imported_model(self, file):
        """Imports an ONNX file, unless that is done, and returns the path of the model file."""
        return self.converted(file, ".imprint", lambda target: [[self.options.imprint, "import", file, "--output", target]])

    def exported_model(self, file):
        """Exports a detector for photos of one size, unless that is done, and returns the path of the ONNX file.

        With a fixed size, the peers are faster, and OpenVINO 2026.4 finds the same objects as ONNX Runtime.
        """
        return self.converted(file, ".onnx", lambda target: [
            [self.options.imprint, "export", file, "--to", "onnx", "--output", target],
            [sys.executable, str(FOLDER / "fix_size.py"), target, *map(str, cases.PHOTO_SIZE)]])

    def converted(self, file, ending, commands):
        """Converts a file to another format, unless that is done, and returns the path of the new file."""
        if file not in self.converted_files:
            target = f"{self.options.folder}/{len(self.converted_files)}-{pathlib.Path(file).stem}{ending}"
            for command in commands(target):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    raise Failure(done.stderr.strip(), done.returncode == UNAVAILABLE)
            self.converted_files[file] = target
        return self.converted_files[file]

    def available(self, peers):
        """Returns the selected peers, without those that are known to be missing."""
        wanted = self.options.peer or peers
        if self.options.precision != "float32":
            wanted = [peer for peer in wanted if peer in cases.PRECISIONS[self.options.precision]]
        return [peer for peer in peers if peer in wanted and peer not in self.missing]

    def measure(self, suite, case, threads):
        """Measures Imprint and every peer in each round, and returns a list of results for each."""
        lines = collections.defaultdict(list)
        programs = ["imprint", *self.available(cases.peers(suite, case))]
        for number in range(self.options.rounds):
            for program in list(programs):
                note(f"{case}, {thread_count(threads)}, round {number + 1}: {program}")
                try:
                    line = self.run(self.command(program, suite, case, threads), threads)
                except Failure as failure:
                    if program == "imprint":
                        sys.exit(f"imprint {failure}")
                    note(f"{program} is skipped: {failure}")
                    programs.remove(program)
                    if failure.is_missing:
                        self.missing.append(program)
                    continue
                lines[program].append(line)
                self.versions[program] = line.get("version", "")
        return lines

    def row(self, suite, case, threads):
        lines = self.measure(suite, case, threads)
        unit = lines["imprint"][0]["unit"]
        lower_is_better = unit in LOWER_IS_BETTER
        results = {}
        for program, rounds in lines.items():
            medians = [line["median"] for line in rounds]
            results[program] = {
                "median": statistics.median(medians), "min": min(medians), "max": max(medians),
                "peakMemory": max(line["peakMemory"] for line in rounds)}
        imprint = results.pop("imprint")
        for peer in results.values():
            ratio = imprint["median"] / peer["median"]
            peer["ratio"] = 1 / ratio if lower_is_better else ratio
        others = [line["others"] for rounds in lines.values() for line in rounds if "others" in line]
        return {
            "bench": suite, "case": case, "threads": threads, "unit": unit, "imprint": imprint, "peers": results,
            "others": max(others, default=None)}


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def spread(result):
    return f"{number(result['median'])} ({number(result['min'])}–{number(result['max'])})"


def comparison_text(result):
    """Formats the median of a peer, and the speed of Imprint relative to it."""
    return f"{number(result['median'])} ({result['ratio']:.2f}x)" if result else "–"


def memory(results):
    return f"{min(result['peakMemory'] for result in results) / 1e6:.0f} MB" if results else "–"


class Table:
    """Prints rows immediately, as plain text, Markdown or JSON."""

    def __init__(self, form):
        self.form = form
        self.suite = None
        self.peers = []

    def add(self, row, peers):
        """Prints a row, and before the first row of a suite a heading with a column for each peer."""
        if self.form == "json":
            print(json.dumps(row, ensure_ascii=False), flush=True)
            return
        if row["bench"] != self.suite:
            if self.suite:
                print()
            self.suite, self.peers = row["bench"], peers
            self.line([self.suite, "threads", "unit", "Imprint", *peers], ["memory", "lowest peer memory"])
            if self.form == "markdown":
                print("|---" * (6 if self.suite == "train" else 4) + "|---" * len(peers) + "|")
        self.line(
            [pathlib.Path(row["case"]).name if cases.is_file(row["case"]) else row["case"], str(row["threads"]), row["unit"], spread(row["imprint"]),
             *(comparison_text(row["peers"].get(peer)) for peer in self.peers)],
            [memory([row["imprint"]]), memory(row["peers"].values())])

    def line(self, texts, training_texts):
        """Prints a line; the suite `train` has additional columns."""
        texts += training_texts if self.suite == "train" else []
        if self.form == "markdown":
            print("| " + " | ".join(texts) + " |", flush=True)
        else:
            columns = [max(map(len, cases.SUITES[self.suite])), 7, 8, 19, *(max(14, len(peer)) for peer in self.peers)]
            print("  ".join(text.ljust(width) for text, width in zip(texts, columns + [7, 0])).rstrip(), flush=True)


def machine(imprint):
    """Returns a description of the machine and of the build of Imprint, in a few lines."""
    processor = platform.processor() or platform.machine()
    try:
        info = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.partition(":")[2].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    version = subprocess.run([imprint, "--version"], capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(
        ["git", "-C", str(FOLDER), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return [
        f"{datetime.date.today()}, {processor}, {len(physical_cores())} cores, {memory:.0f} GB, "
        f"{platform.system()} {platform.release()}",
        f"Imprint {version}" + (f" ({commit})" if commit else ""),
    ]


def select_cases(names, suites):
    """Returns the cases of some of the suites, or those whose names begin with a prefix, in the order of the tables."""
    every = [(suite, case) for suite in suites for case in cases.SUITES[suite]]
    wanted, files = set(), []
    for name in names or [suite for suite in ("train", "predict", "load", "data") if suite in suites]:
        if cases.is_file(name):
            if not pathlib.Path(name).is_file():
                note(f"There is no file {name}.")
                sys.exit(66)
            file_suites = ["predict"] if cases.is_detector(name) else ["predict", "load"]
            files += [(suite, str(pathlib.Path(name).resolve())) for suite in file_suites if suite in suites]
            continue
        named = [pair for pair in every if name in pair] or [pair for pair in every if pair[1].startswith(name)]
        if not named:
            known = ", ".join([*suites, *dict.fromkeys(case for _, case in every)])
            note(f"No case begins with \"{name}\"; choose from {known}.")
            sys.exit(64)
        wanted.update(named)
    return [pair for pair in every if pair in wanted] + sorted(files, key=lambda pair: pair[0] != "predict")


def main():
    parser = argparse.ArgumentParser(
        prog="./run bench --peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", help="suites, prefixes of case names, ONNX files, or model files of detectors (default: train, predict, load and data)")
    parser.add_argument("--imprint", default=".build/release/imprint", help="the command-line tool")
    parser.add_argument("--peer", action="append", help="a peer to compare with (default: all peers of a case)")
    parser.add_argument("--threads", type=int, action="append", help="a number of threads (default: 1, then 2)")
    parser.add_argument("--rounds", type=int, default=3, help="the number of measurements of each program")
    parser.add_argument(
        "--precision", choices=["float32", *cases.PRECISIONS], default="float32",
        help="another precision than float32 selects only the suite predict")
    parser.add_argument("--seconds", type=float, default=2, help="the time of each measurement")
    parser.add_argument("--data", help="a folder of photos, one sub-folder per label (default: drawn images)")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", dest="form", action="store_const", const="json", help="print one JSON object per row")
    forms.add_argument("--markdown", dest="form", action="store_const", const="markdown", help="print Markdown tables")
    parser.add_argument("--check", action="store_true", help="check the arguments, and do not measure")
    options = parser.parse_args()
    known = sorted({peer for peers in cases.PEERS.values() for peer in peers})
    for peer in options.peer or []:
        if peer not in known:
            parser.error(f"there is no peer \"{peer}\"; choose from {', '.join(known)}")
        if options.precision != "float32" and peer not in cases.PRECISIONS[options.precision]:
            parser.error(f"{peer} is not measured in {options.precision}")
    if options.rounds < 1 or options.seconds <= 0 or min(options.threads or [1]) < 1:
        parser.error("expected at least 1 for --rounds and --threads, and more than 0 for --seconds")
    wanted = select_cases(options.case, list(cases.SUITES) if options.precision == "float32" else ["predict"])
    if options.check:
        return
    comparison = Comparison(options)
    table = Table(options.form)
    busy = []
    with tempfile.TemporaryDirectory() as folder:
        options.folder = folder
        if any(suite == "data" for suite, _ in wanted) and not options.data:
            options.data = f"{folder}/photos"
            subprocess.run(
                [options.imprint, "draw", "two-circles", "--output", options.data, "--count", "128"], check=True,
                capture_output=True)
        if options.form != "json":
            print("\n".join(machine(options.imprint)) + "\n", flush=True)
        for threads in options.threads or [1, 2]:
            if threads > len(comparison.cores):
                note(f"Skipped {thread_count(threads)}: there are only {len(comparison.cores)} cores.")
                continue
            for suite, case in wanted:
                row = comparison.row(suite, case, threads)
                known = [peer for peer in cases.PEERS[suite] if any(peer in cases.peers(*pair) for pair in wanted)]
                table.add(row, comparison.available(known))
                if (row["others"] or 0) > BUSY:
                    busy.append(row)
    if options.form != "json":
        print()
        # The three PyTorch peers have the same version.
        versions = {peer.partition("-")[0]: version for peer, version in comparison.versions.items() if version}
        if versions:
            print("Peer versions: " + ", ".join(f"{peer} {version}" for peer, version in versions.items()) + ".")
        if comparison.missing:
            print(f"Not installed: {', '.join(comparison.missing)}.")
        for row in busy:
            print(
                f"Other processes used up to {row['others']:.1f} cores while {row['case']} ran on "
                f"{thread_count(row['threads'])}.")


try:
    main()
except KeyboardInterrupt:
    sys.exit(130)
