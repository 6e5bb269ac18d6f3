"""Trains a model on the devices of simulated users with Flower, and measures the accuracy for other users.

    python3 -m venv .venv-flower && .venv-flower/bin/pip install "flwr>=1.42"
    .venv-flower/bin/python Benchmarks/accuracy/fleet_users.py BASE OUTPUT [--recipe two-circles] [--users 10] [--photos 20] [--test 200] \\
        [--rounds 5] [--others 10] [--kill] [--imprint .build/release/imprint] [-- OPTIONS OF imprint join]

The script starts a real SuperLink on this machine with the server app of docs/examples/fleet, and a process `imprint join` for each of the
users 1 to N. After the rounds, it evaluates BASE, the new model, and the model of `imprint merge` on the test images of other users, and
prints a Markdown table and the mean gain with a bootstrap interval over users. --others 0 leaves this out.

With --kill, it kills the processes of two users in the second round, when they have trained but not answered yet. It starts one of them
again, which must answer in the same round; the other user stays away.

Each device connects through a proxy, which records every byte that the device sends. The script checks that all of these bytes are messages
of the Fleet API without unknown fields, that their arrays have the shape of the head and their metrics are counts, and that they contain
neither the names nor parts of the photos. OUTPUT keeps the images, models and logs.
"""

import argparse
import functools
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from drawn_users import draw
from folds import parse_arguments, run_json
from intervals import percentiles
from recorded_requests import RecordingProxy, check_requests

PACKAGE = Path(__file__).resolve().parents[2]
# The devices that --kill ends: the first joins again, the second does not.
REJOINING, MISSING = 1, 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--recipe", default="two-circles")
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--photos", type=int, default=20)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--others", type=int, default=10)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--imprint", default=".build/release/imprint")
    args, options = parse_arguments(parser)
    args.imprint = shutil.which(args.imprint) or sys.exit(f"{args.imprint} does not exist; build it, or pass --imprint.")
    for user in range(1, args.users + 1):
        draw(args, user, photos(args, user), args.photos, 1)
    model = args.output / "fleet.imprint"
    fleet = Fleet(args, options, model)
    try:
        log = fleet.run()
    finally:
        fleet.stop()
    print(log, file=sys.stderr)
    check_rounds(args, log)
    recorded = [data for proxy in fleet.proxies for data in proxy.recorded]
    files = [file for user in range(1, args.users + 1) for file in photos(args, user).rglob("*.png")]
    requests, byte_count = check_requests(recorded, files, run_json(args.imprint, "inspect", str(args.base), "--json")[0])
    print(f"The {args.users} devices sent {byte_count} bytes in {requests} requests. The script read all of them.\n")
    if args.others:
        print_accuracy(args, model)


def photos(args, user):
    return args.output / f"user-{user}" / "photos"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Fleet:
    """A SuperLink, a process for each device, and a run of the server app."""

    def __init__(self, args, options, model):
        self.args, self.options, self.model = args, options, model
        self.port = free_port()
        self.home = args.output / "flower"
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir(parents=True)
        for file in [model, *args.output.glob("user-*/key.pem*"), *args.output.glob("user-*/log")]:
            file.unlink(missing_ok=True)
        (self.home / "config.toml").write_text(
            f'[superlink]\ndefault = "fleet"\n\n[superlink.fleet]\naddress = "127.0.0.1:{self.port}"\ninsecure = true\n')
        # The programs of Flower start each other.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "FLWR_HOME": str(self.home), "FLWR_TELEMETRY_ENABLED": "0"}
        self.proxies, self.devices, self.superlink = [], {}, None

    def start(self, command, log, **settings):
        file = open(self.args.output / log, "a")
        return subprocess.Popen(command, stdout=file, stderr=file, env=self.environment, process_group=0, **settings)

    def join(self, user):
        folder = self.args.output / f"user-{user}"
        command = [
            self.args.imprint, "join", f"http://127.0.0.1:{self.proxies[user - 1].port}", "--model", str(self.args.base),
            "--photos", str(photos(self.args, user)), "--key", str(folder / "key.pem"), "--poll", "0.5", "--heartbeat", "10",
            "--threads", "1", "--json", *self.options]
        self.devices[user] = self.start(command, f"user-{user}/log")

    def run(self):
        """Runs the rounds, and returns the log of the server app."""
        command = ["flower-superlink", "--insecure", "--disable-runtime-dependency-installation", "--port", str(self.port)]
        self.superlink = self.start(command, "superlink.log")
        wait("the SuperLink", lambda: is_open(self.port), self.superlink)
        for user in range(1, self.args.users + 1):
            is_killed = self.args.kill and user in (REJOINING, MISSING)
            self.proxies.append(RecordingProxy(self.port, functools.partial(self.kill, user) if is_killed else None))
            self.join(user)
        for user in self.devices:
            log = self.args.output / f"user-{user}" / "log"
            wait(f"device {user}", lambda: '"joined"' in log.read_text(), self.devices[user])
        count = self.args.users - (1 if self.args.kill else 0)
        settings = {
            "model": f'"{self.args.base.resolve()}"', "output": f'"{self.model.resolve()}"', "imprint": f'"{self.args.imprint}"',
            "rounds": self.args.rounds, "devices": count}
        run = subprocess.Popen(
            ["flwr", "run", str(PACKAGE / "docs/examples/fleet"), "fleet", "--stream", "--run-config",
             " ".join(f"{name}={value}" for name, value in settings.items())],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.environment, process_group=0)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(run.stdout), daemon=True)
        reader.start()
        wait("the new model", self.model.exists, self.superlink, limit=900)
        # The last lines of the log arrive in intervals of some seconds.
        wait("the end of the log", lambda: any("Wrote " in line for line in lines), limit=60)
        terminate(run)
        reader.join(10)
        return "".join(lines)

    def kill(self, user, name, count):
        """Kills the device in its second answer, before the proxy passes it on; returns whether the proxy passes the request on."""
        if name != "push-messages" or count != 2:
            return True
        self.devices[user].send_signal(signal.SIGKILL)
        self.devices[user].wait()
        if user == REJOINING:
            self.join(user)
        return False

    def stop(self):
        for process in [*self.devices.values(), self.superlink]:
            if process:
                terminate(process)
        for proxy in self.proxies:
            proxy.stop()


def terminate(process):
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_open(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait(name, is_ready, process=None, limit=180):
    end = time.monotonic() + limit
    while not is_ready():
        if process and process.poll() is not None:
            sys.exit(f"{name} ended with status {process.returncode}. Read the logs in OUTPUT.")
        if time.monotonic() > end:
            sys.exit(f"{name} was not ready after {limit} s. Read the logs in OUTPUT.")
        time.sleep(0.2)


def check_rounds(args, log):
    """Checks that every round received the answers of all devices that were there."""
    found = [tuple(map(int, match)) for match in re.findall(r"aggregate_train: Received (\d+) results and (\d+) failures", log)]
    left = args.users - 1
    expected = [(args.users, 0)] * args.rounds
    if args.kill:
        expected = [(args.users, 0), (left, 1)] + [(left, 0)] * (args.rounds - 2)
    if found != expected:
        sys.exit(f"Results and failures by round: found {found}, expected {expected}.")
    print(f"Results and failures by round: {found}.\n")


def print_accuracy(args, model):
    deltas = []
    for user in range(1, args.users + 1):
        deltas.append(str(args.output / f"user-{user}" / "to-merge"))
        run_json(args.imprint, "personalize", str(args.base), str(photos(args, user)), "--output", deltas[-1], "--json")
    merged = args.output / "merged.imprint"
    run_json(args.imprint, "merge", str(args.base), *deltas, "--output", str(merged), "--json")

    def accuracy(model, data):
        return run_json(args.imprint, "evaluate", str(model), str(data), "--json")[-1]["accuracy"]

    rows = []
    for user in range(args.users + 1, args.users + args.others + 1):
        folder = args.output / f"user-{user}" / "test"
        draw(args, user, folder, args.test, 2)
        rows.append([accuracy(model, folder) for model in (args.base, merged, model)])
    print(f"| {args.others} other users | base | merged once | fleet, {args.rounds} rounds |")
    print("|---|---|---|---|")
    columns = list(zip(*rows))
    for name, measure in [("median", statistics.median), ("mean", statistics.mean), ("lowest", min), ("highest", max)]:
        print(f"| {name} | " + " | ".join(f"{measure(column):.1%}" for column in columns) + " |")
    gains = [row[2] - row[0] for row in rows]
    generator = random.Random(1)
    low, high = percentiles(statistics.mean(generator.choices(gains, k=len(gains))) for _ in range(10_000))
    print(f"\nThe fleet's model is better than BASE for {sum(gain > 0 for gain in gains)} users and worse for "
          f"{sum(gain < 0 for gain in gains)}. The mean gain is {100 * statistics.mean(gains):+.1f} points (95 % interval over "
          f"users {100 * low:+.1f} to {100 * high:+.1f}).")


if __name__ == "__main__":
    main()
