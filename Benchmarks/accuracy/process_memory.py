"""Measures the peak memory of a process and its descendants on Linux."""

import os
import threading
import time


class PeakMemory:
    """Samples the memory of a process tree until the end of the `with` block; `megabytes` is the peak.

    The memory is the sum of proportional set sizes (PSS), which counts a page that several processes share once. A sample of a large process
    takes a tenth of a second, so the time between two samples is at least 50 times as long as a sample: the measured program must not
    become slower.
    """

    def __init__(self, process, interval=0.2):
        self.megabytes = 0
        self._process, self._interval = process, interval
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _sample(self):
        while True:
            start = time.perf_counter()
            self.megabytes = max(self.megabytes, sum(map(proportional_set_size, process_tree(self._process))) / 1e6)
            if self._end.wait(max(self._interval, 50 * (time.perf_counter() - start))):
                return


def process_tree(process):
    """Returns a process and its descendants, including children of threads other than the main thread."""
    children = []
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children") as file:
                children += map(int, file.read().split())
    except OSError:  # The process or a thread has ended.
        pass
    return [process] + [descendant for child in children for descendant in process_tree(child)]


def proportional_set_size(process):
    """Returns the proportional set size in bytes; 0 if the process has ended."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
    except (OSError, StopIteration):
        return 0
