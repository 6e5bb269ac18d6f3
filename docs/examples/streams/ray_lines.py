"""Classifies or searches photos with Ray Data, with a few `imprint` processes that load the model once.

    python3 ray_lines.py PATHS OUTPUT PROCESSES COMMAND…
    python3 ray_lines.py paths.txt results.jsonl 4 imprint classify logo.imprint --threads 1

PATHS has the path of a photo in each line; all machines of the cluster need access to the photos and the model. COMMAND is an `imprint
classify` or `imprint detect` without photos. OUTPUT gets one JSON line for each photo, in the order of PATHS. A photo that cannot be read has a
line with "error".
"""

import subprocess
import sys
import threading

import ray


class Process:
    """A running `imprint` process, to which Ray sends batches of paths."""

    def __init__(self, command):
        self.command = [*command, "--files-from", "-", "--json"]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def __call__(self, batch):
        paths = list(batch["text"])
        # The process prints results while it reads paths, so a thread writes them.
        writer = threading.Thread(target=self.write, args=[paths])
        writer.start()
        lines = [self.process.stdout.readline().rstrip("\n") for _ in paths]
        writer.join()
        if not all(lines):
            raise RuntimeError(f"{self.command} ended with status {self.process.wait()}, expected a line for each photo.")
        return {"line": lines}

    def write(self, paths):
        try:
            self.process.stdin.write("".join(path + "\n" for path in paths))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The process has ended, and the reader reports it.


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    paths, output, processes, *command = sys.argv[1:]
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    # Imprint prints no line for an empty path.
    rows = ray.data.read_text(paths, drop_empty_lines=True)
    # Start with one process: each reserves a core, and Ray needs a free core to read the list.
    results = rows.map_batches(Process, fn_constructor_args=[command], batch_size=256, concurrency=(1, int(processes)))
    with open(output, "w", encoding="utf-8") as file:
        for row in results.iter_rows():
            file.write(row["line"] + "\n")


if __name__ == "__main__":
    main()
