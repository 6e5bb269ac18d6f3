"""Checks the fuzz targets in a folder like OSS-Fuzz's command check_build, and prints a line for each.

A target must start and run four inputs, contain instrumentation for coverage and AddressSanitizer, load its libraries from the folder
or the base system, and read its seed corpus without a crash. Exits with status 1 if one does not.
"""

import argparse
import configparser
import filecmp
import os
import pathlib
import re
import subprocess
import tempfile
import zipfile

# As OSS-Fuzz.
MINIMUM_EDGES = 100
MINIMUM_SANITIZER_CALLS = 1000
LIMITS = ["-rss_limit_mb=2560", "-timeout=25"]
# The libraries of the base system.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util))\.so")


def run(*arguments, **options):
    command = [str(argument) for argument in arguments]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", **options)
    return result.returncode, result.stdout + result.stderr


def sanitizer_calls(program):
    """Returns the number of calls of AddressSanitizer, up to the minimum."""
    calls = 0
    with subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", program], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            calls += "<__asan_" in line and "call" in line
            if calls >= MINIMUM_SANITIZER_CALLS:
                process.kill()
                break
    return calls


def check_program(program):
    """Returns the problems of a program that do not depend on its target."""
    problems = []
    calls = sanitizer_calls(program)
    if calls < MINIMUM_SANITIZER_CALLS:
        problems.append(f"{calls} calls of AddressSanitizer, expected {MINIMUM_SANITIZER_CALLS}")
    for name, path in re.findall(r"(\S+) => (not found|\S+)", run("ldd", program)[1]):
        if not SYSTEM.match(name) and pathlib.Path(path).parent != program.parent / "lib":
            problems.append(f"{name} is {path}, expected a file in {program.parent / 'lib'}")
    return problems


def check_target(program):
    """Returns the problems of a target, the number of edges and the number of seeds."""
    problems = []
    options = configparser.ConfigParser()
    options.read_string(program.with_name(program.name + ".options").read_text())
    limits = LIMITS + [f"-{name}={value}" for name, value in options["libfuzzer"].items()]
    sanitizer = ":".join(f"{name}={value}" for name, value in options["asan"].items())
    environment = {**os.environ, "ASAN_OPTIONS": sanitizer}
    status, output = run(program, "-seed=1337", "-runs=4", *limits, env=environment)
    if status != 0 or "Done 4 runs" not in output:
        problems.append(f"it does not start (status {status}):\n{output}")
    edges = sum(int(count) for count in re.findall(r"INFO: Loaded \d+ modules?\s+\((\d+) inline", output))
    if edges < MINIMUM_EDGES:
        problems.append(f"{edges} edges, expected {MINIMUM_EDGES}")
    archive = program.with_name(program.name + "_seed_corpus.zip")
    dictionary = program.with_name(program.name + ".dict")
    with tempfile.TemporaryDirectory() as folder:
        seeds = pathlib.Path(folder)
        with zipfile.ZipFile(archive) as corpus:
            corpus.extractall(seeds)
        count = len(list(seeds.iterdir()))
        status, output = run(program, "-runs=0", f"-dict={dictionary}", *limits, seeds, env=environment)
        if status != 0 or count == 0:
            problems.append(f"it fails with its {count} seeds (status {status}):\n{output}")
    return problems, edges, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    folder = parser.parse_args().folder.resolve()
    programs = sorted(path for path in folder.glob("fuzz_*") if not path.suffix and b"LLVMFuzzerTestOneInput" in path.read_bytes())
    failed = not programs
    for program in programs:
        problems, edges, seeds = check_target(program)
        # All targets are copies of one program.
        if program is programs[0] or not filecmp.cmp(program, programs[0], shallow=False):
            problems += check_program(program)
        failed = failed or bool(problems)
        print(f"{'FAILED' if problems else 'ok':6} {program.name}: {edges} edges, {seeds} seeds")
        for problem in problems:
            print(f"       {problem}")
    print(f"{len(programs)} targets in {folder}")
    raise SystemExit(failed)


main()
