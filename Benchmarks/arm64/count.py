#!/usr/bin/env python3
"""Counts the instructions of the C kernels for arm64 under QEMU, before and after a change: count.py REVISION.

Prints a Markdown table with the instructions per unit of the kernels of a git revision and of the working tree. It needs clang, git and the
Debian packages qemu-user, gcc-aarch64-linux-gnu and libc6-dev-arm64-cross.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KERNELS = "Sources/CImprintKernels"
TARGET = ["--target=aarch64-linux-gnu", "--sysroot=/usr/aarch64-linux-gnu", "-I/usr/aarch64-linux-gnu/include"]
# A CPU without, and one with the optional instructions.
CPUS = {"plain": "cortex-a53", "optional": "max"}


def clang():
    """Returns the compiler of the Swift toolchain, or another clang."""
    swift = shutil.which("swift")
    beside = pathlib.Path(swift).resolve().parent / "clang" if swift else None
    return str(beside) if beside and beside.exists() else "clang"


def build(kernels, folder):
    """Compiles the kernels in a folder and the cases, and returns the program."""
    folder.mkdir()
    sources = [*sorted(kernels.glob("*.c")), HERE / "cases.c"]

    def compile(source):
        target = folder / (source.stem + ".o")
        subprocess.run(
            [clang(), *TARGET, "-O2", f"-I{kernels}/include", "-c", source, "-o", target], check=True)
        return target

    with ThreadPoolExecutor() as pool:
        objects = list(pool.map(compile, sources))
    program = folder / "cases"
    subprocess.run(["aarch64-linux-gnu-gcc", "-static", *objects, "-lm", "-o", program], check=True)
    return program


def counts(program, plugin, cpu, case, times):
    """Returns the numbers of instructions of a case: all, and those that move vector registers to or from the stack."""
    log = subprocess.run(
        ["qemu-aarch64", "-cpu", cpu, "-plugin", plugin, "-d", "plugin", program, case, str(times)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stderr
    line = next(line for line in log.splitlines() if line.startswith("counted "))
    return [int(word) for word in line.split()[1:]]


def per_unit(program, plugin, cpu, case, units):
    """Returns the same for each unit; the difference of two runs leaves out everything but the kernel."""
    once, thrice = (counts(program, plugin, cpu, case, times) for times in (1, 3))
    return [(b - a) / 2 / units for a, b in zip(once, thrice)]


def number(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(f"usage: {sys.argv[0]} REVISION")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        archive = subprocess.run(
            ["git", "-C", ROOT, "archive", sys.argv[1], KERNELS], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        plugin = folder / "count.so"
        subprocess.run([clang(), "-O2", "-shared", "-fPIC", HERE / "count.c", "-o", plugin], check=True)
        before = build(folder / KERNELS, folder / "before")
        after = build(ROOT / KERNELS, folder / "after")
        cases = subprocess.run(["qemu-aarch64", after], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        print("| kernel | per | before | after | with optional instructions | stack before | stack after |")
        print("|---|---|---|---|---|---|---|")
        for line in cases.stdout.splitlines():
            case, unit, units = line.split("\t")
            old = per_unit(before, plugin, CPUS["plain"], case, float(units))
            new = per_unit(after, plugin, CPUS["plain"], case, float(units))
            fast = per_unit(after, plugin, CPUS["optional"], case, float(units))
            optional = number(fast[0]) if abs(fast[0] - new[0]) > 0.001 * new[0] else "–"
            print(f"| {case} | {unit} | {number(old[0])} | {number(new[0])} | {optional} | {number(old[1])} | {number(new[1])} |",
                  flush=True)


main()
