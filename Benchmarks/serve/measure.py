"""Measures `imprint serve` under load, with and without hostile clients, and ONNX Runtime behind the HTTP server of Python.

Usage: measure.py --imprint IMPRINT --model MODEL [--seconds S] [--connections N] [--threads N] [--hostile-seconds S] [--json FILE]

It needs wrk, and a Python with numpy and onnxruntime. Every request has one preprocessed image as a binary tensor, so both servers do the same work.
The load generator runs on the same machine; run nothing else at the same time. It exits with 1 if a request fails, or if the memory of the server
grows by more than a tenth (and 32 MB) after the first tenth of the time.
"""

import argparse
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

FOLDER = pathlib.Path(__file__).parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def resident_megabytes(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


class Memory(threading.Thread):
    """Samples the resident memory of a process every second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.samples, self.stopped = pid, [], threading.Event()
        self.start()

    def run(self):
        while not self.stopped.wait(1):
            self.samples.append(resident_megabytes(self.pid))

    def summary(self):
        self.stopped.set()
        self.join()
        warm = self.samples[len(self.samples) // 10] if self.samples else 0
        return {"warm": round(warm, 1), "maximum": round(max(self.samples[len(self.samples) // 10 :], default=0), 1)}


def write_request(folder, path, shape):
    """Writes the script for wrk that sends one image, and returns its path."""
    count = shape[1] * shape[2] * shape[3]
    header = json.dumps(
        {
            "inputs": [
                {"name": "values", "datatype": "FP32", "shape": shape, "parameters": {"binary_data_size": 4 * count}}
            ]
        }
    ).encode()
    generator = random.Random(1)
    import numpy

    values = numpy.array([generator.uniform(-1, 1) for _ in range(count)], numpy.float32)
    body = folder / "body.bin"
    body.write_bytes(header + values.tobytes())
    script = folder / "request.lua"
    script.write_text(
        f"""
wrk.method, wrk.path = "POST", "{path}"
wrk.headers["Inference-Header-Content-Length"] = "{len(header)}"
local file = io.open("{body}", "rb")
wrk.body = file:read("*a")
file:close()
function done(summary, latency, requests)
  io.write(string.format(
    "RESULT %d %d %d %d %d %d %d %f %f %f\\n", summary.requests, summary.duration, summary.errors.connect, summary.errors.read,
    summary.errors.write, summary.errors.status, summary.errors.timeout, latency:percentile(50), latency:percentile(99), latency.max))
end
"""
    )
    return script


def load(url, script, seconds, connections):
    """Runs wrk and returns its results."""
    command = ["wrk", "-t", "2", "-c", str(connections), "-d", f"{seconds}s", "--timeout", "30s", "-s", str(script), url]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    numbers = [float(text) for text in re.search("^RESULT (.*)$", output, re.MULTILINE)[1].split()]
    requests, microseconds, errors, (median, p99, longest) = numbers[0], numbers[1], numbers[2:7], numbers[7:]
    return {
        "requests": int(requests),
        "perSecond": round(requests / microseconds * 1e6, 1),
        "failed": int(sum(errors)),
        "milliseconds": {"median": round(median / 1e3, 2), "p99": round(p99 / 1e3, 2), "maximum": round(longest / 1e3, 2)},
    }


class Hostile:
    """Clients that send too slowly, too much or nonsense, or that disconnect, until `stop`."""

    def __init__(self, port, path, script):
        self.port, self.stopped = port, threading.Event()
        body = (script.parent / "body.bin").read_bytes()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()
        self.request = head + f"Content-Length: {len(body)}\r\n".encode() + b"\r\n" + body
        self.head = head
        kinds = [self.slow_heads, self.slow_bodies, self.oversized, self.malformed, self.disconnecting]
        self.threads = [threading.Thread(target=kind, daemon=True) for kind in kinds]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(30)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def slow(self, beginning, count):
        clients = []
        while not self.stopped.wait(0.05):
            try:
                if len(clients) < count:
                    client = self.connect()
                    client.sendall(beginning)
                    clients.append(client)
                client = clients.pop(0)
                client.sendall(b"x")
                clients.append(client)
            except OSError:
                continue
        for client in clients:
            client.close()

    def slow_heads(self):
        self.slow(b"GET /v2 HTTP/1.1\r\nHost: ", 400)

    def slow_bodies(self):
        self.slow(self.head + b"Content-Length: 100000\r\n\r\n", 100)

    def repeat(self, data, waits):
        while not self.stopped.wait(0.02):
            try:
                with self.connect() as client:
                    client.sendall(data)
                    if waits:
                        client.recv(4096)
            except OSError:
                continue

    def oversized(self):
        self.repeat(self.head + b"Content-Length: 10000000000\r\n\r\n" + bytes(1 << 20), True)

    def malformed(self):
        generator = random.Random(2)
        while not self.stopped.wait(0.02):
            kinds = [
                generator.randbytes(300),
                b"GET / HTTP/9.9\r\n\r\n",
                self.head + b"Content-Length: 3\r\n\r\n{[}",
                b"A" * 100000,
                self.head + b"Content-Length: 20\r\n\r\n" + b'{"inputs":[[[[[[[[[[',
            ]
            try:
                with self.connect() as client:
                    client.sendall(generator.choice(kinds))
                    client.shutdown(socket.SHUT_WR)
                    client.recv(4096)
            except OSError:
                continue

    def disconnecting(self):
        self.repeat(self.request, False)


def measure_imprint(options, folder):
    port = free_port()
    command = [options.imprint, "serve", options.model, "--name", "m", "--port", str(port), "--threads", str(options.threads)]
    command += ["--max-batch", str(options.max_batch), "--quiet"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        metadata = json.load(urllib.request.urlopen(f"{url}/v2/models/m"))
        shape = [1] + next(tensor["shape"] for tensor in metadata["inputs"] if tensor["name"] == "values")[1:]
        script = write_request(folder, "/v2/models/m/infer", shape)
        load(url, script, 3, options.connections)
        memory = Memory(server.pid)
        result = load(url, script, options.seconds, options.connections) | {"memoryMB": memory.summary()}
        hostile = None
        if options.hostile_seconds:
            memory, clients = Memory(server.pid), Hostile(port, "/v2/models/m/infer", script)
            hostile = load(url, script, options.hostile_seconds, options.connections)
            clients.stop()
            hostile["memoryMB"] = memory.summary()
        metrics = urllib.request.urlopen(f"{url}/metrics").read().decode()
        batches = {name: float(re.search(f"^imprint_batch_size_{name} (.*)$", metrics, re.MULTILINE)[1]) for name in ("sum", "count")}
        result["meanBatchSize"] = round(batches["sum"] / batches["count"], 2)
        server.send_signal(signal.SIGTERM)
        result["exitStatus"] = server.wait(40)
        return result, hostile, script
    finally:
        server.kill()


def measure_python(options, folder, script):
    port, model = free_port(), folder / "m.onnx"
    subprocess.run([options.imprint, "export", options.model, "--to", "onnx", "--output", str(model), "--quiet"], check=True)
    server = subprocess.Popen([sys.executable, str(FOLDER / "onnx_server.py"), str(model), str(port), str(options.threads)])
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        url = f"http://127.0.0.1:{port}"
        load(url, script, 3, options.connections)
        memory = Memory(server.pid)
        return load(url, script, min(options.seconds, 60), options.connections) | {"memoryMB": memory.summary()}
    finally:
        server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--imprint", required=True, help="the program imprint")
    parser.add_argument("--model", required=True, help="a model file of a classifier")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--max-batch", type=int, default=8)
    parser.add_argument("--hostile-seconds", type=int, default=60, help="0 for no hostile clients")
    parser.add_argument("--json", help="a file for the results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        imprint, hostile, script = measure_imprint(options, folder)
        python = measure_python(options, folder, script)
    results = {"imprint": imprint, "imprintWithHostileClients": hostile, "onnxRuntimeInPython": python}
    text = json.dumps(results, indent=2)
    print(text)
    if options.json:
        pathlib.Path(options.json).write_text(text + "\n")
    problems = []
    for name, result in (("imprint", imprint), ("imprintWithHostileClients", hostile)):
        if result is None:
            continue
        if result["failed"]:
            problems.append(f"{name}: {result['failed']} requests failed, expected none")
        memory = result["memoryMB"]
        if memory["maximum"] > max(memory["warm"] * 1.1, memory["warm"] + 32):
            problems.append(f"{name}: the memory grew from {memory['warm']} to {memory['maximum']} MB")
    if imprint["exitStatus"] != 0:
        problems.append(f"imprint: the exit status is {imprint['exitStatus']}, expected 0")
    if problems:
        sys.exit("\n".join(problems))


main()
