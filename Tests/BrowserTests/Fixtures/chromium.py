"""Starts headless Chromium and controls it by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/).

Needs websocket-client.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import websocket


class Failure(Exception):
    """A failure with a message for the user of this script."""


class Refused(Failure):
    """An error response of Chromium, for example while a page reloads."""


class Chromium:
    """A Chromium process with one page, which runs during a `with` block."""

    def __init__(self, timeout, camera=None, accepts_certificates=False):
        self.camera = camera
        self.accepts_certificates = accepts_certificates
        self.deadline = time.monotonic() + timeout
        self.timeout = timeout
        self.events = []
        self.sent = 0

    def __enter__(self):
        names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
        program = os.environ.get("IMPRINT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
        if not program:
            raise Failure("Chromium is not installed. Install it, or set the environment variable IMPRINT_CHROMIUM")
        self.profile = tempfile.mkdtemp(prefix="imprint-browser-")
        arguments = [
            program, "--headless=new", "--disable-gpu", "--no-first-run", "--no-default-browser-check",
            "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--disable-sync",
            "--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio", "--remote-debugging-port=0",
            "--remote-allow-origins=*", f"--user-data-dir={self.profile}", "about:blank",
        ]
        if self.camera:
            arguments[1:1] = [
                "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
                f"--use-file-for-fake-video-capture={self.camera}",
            ]
        if self.accepts_certificates:
            arguments.insert(1, "--ignore-certificate-errors")
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            arguments.insert(1, "--no-sandbox")  # Chromium's sandbox does not work as root.
        try:
            self.log = open(os.path.join(self.profile, "log"), "w+", encoding="utf-8", errors="replace")
            # A new process group, so that all of its processes can be killed. Their temporary files are removed with the profile.
            self.process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, start_new_session=True,
                env={**os.environ, "TMPDIR": self.profile})
        except OSError as error:
            shutil.rmtree(self.profile, ignore_errors=True)
            raise Failure(f"{program} cannot be started: {error}") from None
        try:
            self.connect()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()
        for _ in range(20):  # Ending processes may still write files.
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.05)

    def connect(self):
        """Waits for Chromium's port, connects to it and opens a page."""
        port_file = os.path.join(self.profile, "DevToolsActivePort")
        lines = []
        while len(lines) < 2:
            if self.process.poll() is not None:
                self.log.seek(0)
                raise Failure(f"Chromium ended immediately (exit code {self.process.returncode}): {self.log.read()[-2000:]}")
            self.check_time("Chromium did not start")
            time.sleep(0.02)
            if os.path.exists(port_file):
                with open(port_file, encoding="ascii") as file:
                    lines = file.read().split()
        # A busy machine can take seconds to accept the connection. Afterwards, short waits keep the deadline exact.
        self.socket = websocket.create_connection(
            f"ws://127.0.0.1:{lines[0]}{lines[1]}", timeout=max(1, self.deadline - time.monotonic()), enable_multithread=False)
        self.socket.settimeout(1)
        self.session = None
        self.pages = []
        self.switch(1)

    def switch(self, number):
        """Switches to another page, counted from 1; the next unused number opens a new page."""
        while len(self.pages) < number:
            self.session = None
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            self.pages.append(self.session)
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
            # Tests count requests, and a page forgets requests after the first 250.
            self.call("Page.addScriptToEvaluateOnNewDocument", source="performance.setResourceTimingBufferSize(10000)")
        self.session = self.pages[number - 1]
        self.call("Page.bringToFront")

    def hand_over(self, path):
        """Creates a file, waits until another program has written an address to a second file, and returns the address."""
        open(path, "w").close()
        while True:
            self.check_time(f"{path}.answer was not written")
            if os.path.exists(f"{path}.answer"):
                with open(f"{path}.answer", encoding="utf-8") as file:
                    return file.read()
            time.sleep(0.05)

    def check_time(self, problem):
        if time.monotonic() > self.deadline:
            raise Failure(f"{problem} within {self.timeout} s")

    def receive(self, problem):
        """Returns the next message, and records it if it is an event."""
        while True:
            self.check_time(problem)
            try:
                message = json.loads(self.socket.recv())
            except websocket.WebSocketTimeoutException:
                continue
            except (websocket.WebSocketException, OSError) as error:
                raise Failure(f"the connection to Chromium failed: {error}") from None
            if "method" in message:
                self.events.append(message)
            if message.get("method") == "Page.javascriptDialogOpening":
                self.send("Page.handleJavaScriptDialog", accept=True)
            return message

    def send(self, method, **parameters):
        """Sends a request and returns its number."""
        self.sent += 1
        request = {"id": self.sent, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        self.socket.send(json.dumps(request))
        return self.sent

    def call(self, method, **parameters):
        """Sends a request and returns its response."""
        number = self.send(method, **parameters)
        while True:
            message = self.receive(f"{method} was not answered")
            if message.get("id") == number:
                if "error" in message:
                    raise Refused(f"{method}: {message['error']['message']}")
                return message["result"]

    def open(self, url):
        """Opens a page and waits until it has loaded."""
        before = len(self.events)
        answer = self.call("Page.navigate", url=url)
        if "errorText" in answer:
            raise Failure(f"{url} cannot be opened: {answer['errorText']}")
        while not any(event["method"] == "Page.loadEventFired" for event in self.events[before:]):
            self.receive(f"{url} was not loaded")

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression, or of its promise."""
        value, error = self.attempt(expression)
        if error:
            raise Failure(error)
        return value

    def attempt(self, expression):
        """Returns the value of a JavaScript expression and `None`, or `None` and an error message."""
        try:
            answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        except Refused as refused:
            return None, str(refused)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details.get("text")
            return None, f"the expression {expression!r} failed: {text}"
        return answer["result"].get("value"), None

    def wait_until(self, expression):
        """Waits until an expression is true. While a page reloads, the elements that the expression reads may be missing."""
        error = None
        while True:
            self.check_time(error or f"{expression!r} did not become true")
            value, error = self.attempt(expression)
            if value:
                return
            time.sleep(0.05)

    def screenshot(self, path):
        """Writes an image of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def problems(self):
        """Returns the errors and warnings of the page."""
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(" ".join(str(part.get("value", part.get("description"))) for part in parameters["args"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    def requests(self):
        """Returns the requested addresses, without data URLs."""
        urls = [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith("data:")]
