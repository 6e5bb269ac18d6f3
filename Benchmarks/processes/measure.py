"""Measures training steps with several processes: Imprint through MPI, and PyTorch with DistributedDataParallel and Gloo.

Each process has one thread and a batch of the size of the case, so that ideal scaling doubles the rate with the number of processes, as long as
there are cores. The programs take turns; the table shows medians, minima and maxima of the rounds in images per second.

    Benchmarks/processes/measure.py --imprint .build-mpi/release/imprint --python Benchmarks/peers/.venv/bin/python
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--imprint", required=True, help="a build with the trait MPI")
parser.add_argument("--python", help="a Python with PyTorch; without it, only Imprint is measured")
parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
parser.add_argument("--cases", nargs="+", default=["lenet-28", "logonet-96", "mobilenet-v1-224", "resnet-50-224"])
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()
environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}


def last_line(command):
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{result.stderr}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def imprint(case, count):
    launcher = ["mpirun", "--oversubscribe", "-np", str(count)] if count > 1 else []
    return last_line([
        *launcher, options.imprint, "bench", "train", "--case", case, "--threads", "1", "--seconds",
        str(options.seconds), "--json"])


def torch(case, count):
    script = str(pathlib.Path(__file__).with_name("ddp.py"))
    return last_line([
        options.python, "-m", "torch.distributed.run", f"--nproc_per_node={count}", script, case, "--seconds",
        str(options.seconds)])


def independent(case, count):
    """The sum of the rates of processes that do not share their work: the limit that the machine sets."""
    command = [
        options.imprint, "bench", "train", "--case", case, "--threads", "1", "--seconds", str(options.seconds), "--json"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return {"median": sum(json.loads(process.communicate()[0])["median"] for process in processes)}


programs = {"Imprint": imprint, "Imprint, independent processes": independent, **({"PyTorch": torch} if options.python else {})}
print("| case | processes | " + " | ".join(programs) + " | Imprint relative to PyTorch |")
print("|---|---|" + "---|" * (len(programs) + 1))
for case in options.cases:
    for count in options.processes:
        rates = {name: [] for name in programs}
        for _ in range(options.rounds):
            for name, program in programs.items():
                rates[name].append(program(case, count)["median"])
        cells = [f"{statistics.median(rates[name]):.1f} ({min(rates[name]):.1f} to {max(rates[name]):.1f})" for name in programs]
        medians = [statistics.median(rates[name]) for name in programs]
        ratio = f"{medians[0] / medians[2]:.2f}" if len(medians) == 3 else ""
        print(f"| {case} | {count} | " + " | ".join(cells) + f" | {ratio} |", flush=True)
