"""Compares the accuracy, time and memory of `imprint train` with those of fastai, on the same photos, cores and pre-trained weights.

    python3 Benchmarks/accuracy/against_fastai.py OUTPUT SET … [--seeds 1,2,3,4,5] [--imprint .build/release/imprint] \\
        [--python PYTHON] [--train TEMPLATE] [--evaluate TEMPLATE] [--epochs 4] [--threads N] [--test 0.25] [--block 1] \\
        [--limit N] [--programs Imprint,fastai] [--summary]

A SET is a folder of photos as for photo_sets.py, which splits it for each seed. PYTHON has the packages of requirements.txt in this
folder. For each set and seed, both programs train in new processes on the same training photos, one after the other, in alternating
order, with the same number of threads and bound to that many cores. Then both models classify the test photos. The programs:

- Imprint: the command of --train. The time covers the process from start to end, including writing the model file.
- fastai: fastai_peer.py, which trains the head for one epoch and all layers for --epochs. The time covers training without imports
  and without writing a model file.

The memory is the peak of the sum of proportional set sizes (PSS) of the process and its children during training.

Prints a row per run, then for each set the mean difference in accuracy and the ratios of time and memory, fastai divided by Imprint, as
the median and range over seeds. The interval of the difference is a paired bootstrap: it draws seeds and test photos with replacement.
OUTPUT/results.jsonl keeps the results. A run that was interrupted continues; --summary prints only the kept results, and --programs runs
one program at a time. Run it on an otherwise idle machine to compare times: the column "load" is the number of busy cores before the run,
over one minute, in part from the run before. The accuracy does not depend on the load.
"""

import argparse
import contextlib
import json
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from photo_sets import split
from process_memory import PeakMemory

TRAIN = "{imprint} train {train} --base efficientnet-lite0 --output {model} --seed {seed} --threads {threads}"
EVALUATE = "{imprint} evaluate {model} {test} --images --json --threads {threads}"
PROGRAMS = ["Imprint", "fastai"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("sets", type=lambda path: Path(path).resolve(), nargs="+")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3, 4, 5])
    parser.add_argument("--imprint", default=".build/release/imprint")
    parser.add_argument("--python", default=sys.executable, help="the Python that has fastai (default: the one of this script)")
    parser.add_argument("--train", default=TRAIN, help=f"the training command of Imprint (default: {TRAIN})")
    parser.add_argument("--evaluate", default=EVALUATE, help=f"the evaluation command of Imprint (default: {EVALUATE})")
    parser.add_argument("--epochs", type=int, default=4, help="the epochs of fine_tune in fastai")
    parser.add_argument("--peer-options", default="", help="more options of fastai_peer.py")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--test", type=float, default=0.25, help="the fraction of test photos")
    parser.add_argument("--block", type=int, default=1, help="the number of consecutive photos that stay together")
    parser.add_argument("--limit", type=int, help="the approximate number of photos of a set to take (default: all)")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=PROGRAMS, help="the programs to run (default: both)")
    parser.add_argument("--summary", action="store_true", help="print the kept results without measuring")
    args = parser.parse_args()
    names = [folder.name for folder in args.sets]
    if not set(args.programs) <= set(PROGRAMS):
        sys.exit(f"--programs takes {' and '.join(PROGRAMS)}, separated by a comma.")
    if len(set(names)) < len(names):
        sys.exit("Two sets have the same folder name. Rename one: results are kept by name.")
    args.output.mkdir(parents=True, exist_ok=True)
    # Exit with an exception, which ends the program that is running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    kept = {(row["set"], row["seed"], row["program"]): row for row in read_rows(args.output / "results.jsonl")}

    print("| set | seed | program | photos | tested | accuracy | seconds | memory | load |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    rows = []
    for number, folder in enumerate(args.sets):
        for turn, seed in enumerate(args.seeds):
            for program in PROGRAMS if (number + turn) % 2 == 0 else reversed(PROGRAMS):
                row = kept.get((folder.name, seed, program))
                if row is None and (args.summary or program not in args.programs):
                    continue
                if row is None:
                    row = run(args, folder, seed, program)
                    append(args.output / "results.jsonl", row)
                elif row["settings"] != settings(args, program) and not args.summary:
                    sys.exit(f"{args.output}/results.jsonl has results with other options. Choose another OUTPUT.")
                rows.append(row)
                print(
                    f"| {row['set']} | {seed} | {program} | {row['photos']} | {len(row['correct'])} | {row['accuracy']:.1%} "
                    f"| {row['seconds']:.1f} | {row['memory']:.0f} MB | {row['load']:.1f} |", flush=True)
    summarize(names, rows)


def settings(args, program):
    """Returns the options that results of a program depend on."""
    shared = {"threads": args.threads, "test": args.test, "block": args.block, "limit": args.limit}
    if program == "fastai":
        return {**shared, "epochs": args.epochs, "options": args.peer_options}
    return {**shared, "train": args.train, "evaluate": args.evaluate}


def run(args, source, seed, program):
    """Trains and evaluates with one program, and returns the row of its result."""
    folder = args.output / f"{source.name}-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    photos = split(source, folder, args.test, seed, args.block, args.limit)
    load = os.getloadavg()[0]
    result = (run_imprint if program == "Imprint" else run_fastai)(args, folder, seed)
    tested = {str(path.relative_to(folder / "test")) for path in (folder / "test").glob("*/*")}
    if result["correct"].keys() != tested:
        sys.exit(f"{program} classified {len(result['correct'])} of {len(tested)} test photos of {folder}; expected all of them.")
    shutil.rmtree(folder)
    return {
        "set": source.name, "seed": seed, "program": program, "settings": settings(args, program), "photos": photos["train"],
        "load": load, "accuracy": statistics.mean(result["correct"].values()), **result}


def run_imprint(args, folder, seed):
    model = folder / "model.imprint"
    values = {
        "imprint": args.imprint, "train": folder / "train", "test": folder / "test", "model": model, "seed": seed,
        "threads": args.threads}
    _, seconds, memory = measure(args, fill(args.train, values))
    output, _, _ = measure(args, fill(args.evaluate, values))
    images = [json.loads(line) for line in output.splitlines()][:-1]
    test = (folder / "test").resolve()
    correct = {str(Path(image["file"]).absolute().relative_to(test)): image["correct"] for image in images}
    return {"seconds": seconds, "memory": memory, "modelBytes": model.stat().st_size, "correct": correct}


def run_fastai(args, folder, seed):
    predictions = folder / "predictions.json"
    command = [
        args.python, str(Path(__file__).with_name("fastai_peer.py")), "--train", str(folder / "train"), "--test", str(folder / "test"),
        "--epochs", str(args.epochs), "--seed", str(seed), "--threads", str(args.threads), "--predictions", str(predictions),
        *shlex.split(args.peer_options)]
    output, seconds, _ = measure(args, command, samples_memory=False)
    result = json.loads(output.splitlines()[-1])
    return {
        "seconds": result["seconds"], "memory": result["peakMemory"], "processSeconds": seconds,
        "versions": {name: result[name] for name in ("fastai", "torch")}, "correct": json.loads(predictions.read_text())}


def fill(template, values):
    return [part.format(**values) for part in shlex.split(template)]


def measure(args, command, samples_memory=True):
    """Runs a command on the first cores, and returns its output, its seconds, and its peak memory in megabytes, or 0 without samples."""
    cores = sorted(os.sched_getaffinity(0))[: args.threads]
    start = time.perf_counter()
    with open(args.output / "errors.log", "w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        try:
            with PeakMemory(process.pid) if samples_memory else contextlib.nullcontext() as memory:
                output = process.communicate()[0]
                seconds = time.perf_counter() - start
        finally:
            process.kill()  # If this script is interrupted; a process that has ended is not affected.
        if process.returncode != 0:
            errors.seek(0)
            sys.exit(f"{shlex.join(command)} failed with exit code {process.returncode}: {errors.read()[-2000:]}")
    return output, seconds, memory.megabytes if memory else 0


def read_rows(file):
    """Reads the results; a last line that an interruption cut off is ignored."""
    rows = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            rows.append(json.loads(line))
        except ValueError:
            print(f"{file} has an incomplete line, which is ignored.", file=sys.stderr)
    return rows


def append(file, row):
    incomplete = file.exists() and not file.read_bytes().endswith(b"\n")
    with file.open("a") as output:
        output.write(("\n" if incomplete else "") + json.dumps(row) + "\n")


def summarize(names, rows):
    """Prints the comparison of each set over the seeds that both programs have finished."""
    print("\n| set | seeds | Imprint | fastai | difference, 95 % interval | time, fastai / Imprint | memory, fastai / Imprint |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        results = {(row["seed"], row["program"]): row for row in rows if row["set"] == name}
        pairs = [
            [results[seed, program] for program in PROGRAMS] for seed in sorted({seed for seed, _ in results})
            if all((seed, program) in results for program in PROGRAMS)]
        if not pairs:
            continue
        imprint, fastai = (statistics.mean(row["accuracy"] for row in column) for column in zip(*pairs))
        difference, low, high = paired_bootstrap(pairs)
        print(
            f"| {name} | {len(pairs)} | {imprint:.1%} | {fastai:.1%} | {100 * difference:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}) "
            f"| {ratio(pairs, 'seconds')} | {ratio(pairs, 'memory')} |")


def ratio(pairs, key):
    ratios = [fastai[key] / imprint[key] for imprint, fastai in pairs]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def paired_bootstrap(pairs, resamples=2000):
    """Returns the mean difference in accuracy, Imprint minus fastai, and its 95 % interval.

    A photo can be a test photo for several seeds. A resample draws seeds and photos, so that a photo has the same weight for all seeds.
    """
    gains = [
        [(photo, imprint["correct"][photo] - fastai["correct"][photo]) for photo in sorted(imprint["correct"])]
        for imprint, fastai in pairs]
    photos = sorted({photo for run in gains for photo, _ in run})

    def mean(run, weights):
        total = sum(weights[photo] for photo, _ in run)
        return sum(weights[photo] * gain for photo, gain in run) / total if total else None

    generator = random.Random(1)
    samples = []
    for _ in range(resamples):
        weights = Counter(generator.choices(photos, k=len(photos)))
        values = [mean(run, weights) for run in gains]
        values = [value for value in generator.choices(values, k=len(values)) if value is not None]
        if values:
            samples.append(statistics.mean(values))
    samples.sort()
    estimate = statistics.mean(mean(run, Counter(photos)) for run in gains)
    return estimate, samples[int(0.025 * len(samples))], samples[int(0.975 * len(samples))]


if __name__ == "__main__":
    main()
