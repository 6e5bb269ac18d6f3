"""Opens a page in headless Chromium and prints its state as JSON.

    python3 browser.py URL [--width 1280] [--height 800] [--evaluate EXPRESSION | --file EXPRESSIONS.json]
                       [--wait-until EXPRESSION] [--steps STEPS.json] [--camera FILE.mjpeg] [--dark] [--forced-colors]
                       [--no-script] [--print] [--accept-certificates]
                       [--screenshot FILE.png] [--pdf FILE.pdf] [--timeout SECONDS]

Prints {"values": {...}, "console": [...], "requests": [...]}: the values of the JavaScript expressions by name, the errors and
warnings of the page, and all requested addresses. A file of expressions is a JSON object of names and expressions; the single
expression of --evaluate has the name "value". With --no-script the scripts of the page do not run; expressions still do.

A file of steps is a JSON array of user actions. Each step is an object with one of these keys:

    "wait"           an expression; waits until it is true
    "note"           a name; records the value of the expression "value" under this name
    "click"          a selector; presses the mouse on the element until the expression "until", if any, is true
    "drag"           the selector of an element; drags from the position "from" to "to", in fractions of the element, with the
                     mouse or, if "touch" is true, with a finger
    "key"            a key; presses it until the expression "until", if any, is true, with the shift key if "shift" is true, and with
                     the control key if "control" is true
    "type"           a text to enter
    "choose"         the selector of a file input; chooses the files "paths", or the files in a folder if the input takes folders
    "drop"           a selector; drops the files and folders "paths" on the middle of the element, as from a file manager
    "accessibility"  a name; records the role and name of all elements that assistive technology sees
    "create"         a path; creates an empty file, for which another program waits
    "reload"         true; reloads the page, which first runs the script "first"
    "minimize"       true to minimize the window, which hides the page; false to restore it
    "page"           the number of a page; switches to it. The next unused number opens a new page with the same address. With
                     "signal", creates that file, waits for a file of that name with the suffix ".answer", and opens its address.

Dialogs of the page are accepted. With --accept-certificates, self-signed certificates are accepted too. With --camera, the page
can use a camera that shows these frames; otherwise there is no camera.

The environment variable IMPRINT_CHROMIUM names the program of Chromium; the default is the first one on the PATH. Chromium has a
temporary profile, and the script always terminates it (chromium.py). Needs websocket-client.
"""
import argparse
import base64
import json
import signal
import sys

from chromium import Chromium, Failure


class Browser(Chromium):
    """Chromium with the actions of a user."""

    def press(self, selector, until):
        """Scrolls an element into view and presses the mouse in its middle until an expression is true."""
        quoted = json.dumps(selector)
        while True:
            self.check_time(f"{selector} was not hit by the mouse")
            self.wait_until(f"document.querySelector({quoted})?.checkVisibility() === true")
            position = self.evaluate(f"""(() => {{
                const element = document.querySelector({quoted});
                element.scrollIntoView({{ block: "center", behavior: "instant" }});
                window.wasMissed = false;
                const check = (event) => {{ window.wasMissed ||= !event.composedPath().includes(element); }};
                for (const kind of ["pointerdown", "pointerup"]) addEventListener(kind, check, {{ capture: true, once: true }});
                const box = element.getBoundingClientRect();
                return {{ x: box.x + box.width / 2, y: box.y + box.height / 2 }};
            }})()""")
            mouse = dict(position, button="left", clickCount=1)
            self.call("Input.dispatchMouseEvent", type="mousePressed", **mouse)
            # The page may have moved the element before the press.
            was_missed, _ = self.attempt("window.wasMissed")
            if until and not was_missed:
                self.wait_until(until)
            self.call("Input.dispatchMouseEvent", type="mouseReleased", **mouse)
            # Or before the release, which is no click then. A press until an expression is true needs no click.
            if not until and not was_missed:
                was_missed, _ = self.attempt("window.wasMissed")
            if not was_missed:
                return

    def drag(self, selector, start, end, is_touch):
        """Drags between two positions in an element, given in fractions of it, with the mouse or a finger."""
        quoted = json.dumps(selector)
        self.wait_until(f"document.querySelector({quoted})?.checkVisibility() === true")
        box = self.evaluate(f"""(() => {{
            const element = document.querySelector({quoted});
            element.scrollIntoView({{ block: "center", behavior: "instant" }});
            const {{ x, y, width, height }} = element.getBoundingClientRect();
            return {{ x, y, width, height }};
        }})()""")
        points = [
            {"x": box["x"] + box["width"] * (start[0] + (end[0] - start[0]) * part / 4),
             "y": box["y"] + box["height"] * (start[1] + (end[1] - start[1]) * part / 4)} for part in range(5)]
        if is_touch:
            for index, point in enumerate(points):
                kind = "touchStart" if index == 0 else "touchMove"
                self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[point])
            self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
            return
        mouse = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", **points[0], **mouse)
        for point in points[1:]:
            self.call("Input.dispatchMouseEvent", type="mouseMoved", **point, **mouse)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **points[-1], **mouse)

    def drop(self, selector, paths):
        """Drops files and folders on the middle of an element."""
        quoted = json.dumps(selector)
        self.wait_until(f"document.querySelector({quoted})?.checkVisibility() === true")
        position = self.evaluate(f"""(() => {{
            const element = document.querySelector({quoted});
            element.scrollIntoView({{ block: "center", behavior: "instant" }});
            const box = element.getBoundingClientRect();
            return {{ x: box.x + box.width / 2, y: box.y + box.height / 2 }};
        }})()""")
        data = {"items": [], "files": paths, "dragOperationsMask": 1}  # 1: copy
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, data=data, **position)

    def key(self, name, until, shift, control):
        """Presses a key until an expression is true."""
        codes = {
            "Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "End": 35,
            "Delete": 46, "Escape": 27, "y": 89, "z": 90, "Z": 90,
        }
        key = {"key": name, "windowsVirtualKeyCode": codes[name], "modifiers": (8 if shift else 0) + (2 if control else 0)}
        text = {"Enter": "\r", " ": " "}.get(name)
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **key, **({"text": text} if text else {}))
        if until:
            self.wait_until(until)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def accessibility(self):
        """Returns the role and name of all elements that assistive technology sees."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            {"role": node["role"]["value"], "name": str(node.get("name", {}).get("value", ""))}
            for node in nodes if not node["ignored"] and "value" in node.get("role", {})]

    def execute(self, step, values):
        """Executes a step and adds its recorded values to `values`."""
        if "wait" in step:
            self.wait_until(step["wait"])
        elif "note" in step:
            values[step["note"]] = self.evaluate(step["value"])
        elif "click" in step:
            self.press(step["click"], step.get("until"))
        elif "drag" in step:
            self.drag(step["drag"], step["from"], step["to"], step.get("touch", False))
        elif "key" in step:
            self.key(step["key"], step.get("until"), step.get("shift", False), step.get("control", False))
        elif "type" in step:
            self.call("Input.insertText", text=step["type"])
        elif "choose" in step:
            root = self.call("DOM.getDocument")["root"]["nodeId"]
            node = self.call("DOM.querySelector", nodeId=root, selector=step["choose"])["nodeId"]
            self.call("DOM.setFileInputFiles", nodeId=node, files=step["paths"])
        elif "drop" in step:
            self.drop(step["drop"], step["paths"])
        elif "accessibility" in step:
            values[step["accessibility"]] = self.accessibility()
        elif "create" in step:
            open(step["create"], "w").close()
        elif "reload" in step:
            self.call("Page.addScriptToEvaluateOnNewDocument", source=step.get("first", ""))
            self.open(self.evaluate("location.href"))
        elif "page" in step:
            address = self.hand_over(step["signal"]) if "signal" in step else self.evaluate("location.href")
            is_new = step["page"] > len(self.pages)
            self.switch(step["page"])
            if is_new:
                self.open(address)
        elif "minimize" in step:
            self.minimize(step["minimize"])
        else:
            raise Failure(f"unknown step {step}")

    def minimize(self, is_minimized):
        """Minimizes the window of the page, or restores it."""
        window = self.call("Browser.getWindowForTarget")["windowId"]
        self.call("Browser.setWindowBounds", windowId=window, bounds={"windowState": "minimized" if is_minimized else "normal"})


def main():
    parser = argparse.ArgumentParser(description="Opens a page in headless Chromium and prints its state as JSON.")
    parser.add_argument("url")
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--height", type=int, default=800)
    parser.add_argument("--evaluate", metavar="EXPRESSION")
    parser.add_argument("--file", metavar="EXPRESSIONS.json")
    parser.add_argument("--wait-until", metavar="EXPRESSION")
    parser.add_argument("--steps", metavar="STEPS.json")
    parser.add_argument("--camera", metavar="FILE.mjpeg")
    parser.add_argument("--screenshot", metavar="FILE.png")
    parser.add_argument("--pdf", metavar="FILE.pdf")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--forced-colors", action="store_true", help="replace the colours of the page")
    parser.add_argument("--print", action="store_true", help="use the print style sheet")
    parser.add_argument("--no-script", action="store_true")
    parser.add_argument("--accept-certificates", action="store_true", help="accept self-signed certificates")
    parser.add_argument("--timeout", type=float, default=60, help="maximum duration in seconds")
    options = parser.parse_args()

    expressions = {}
    if options.file:
        with open(options.file, encoding="utf-8") as file:
            expressions = json.load(file)
    if options.evaluate:
        expressions["value"] = options.evaluate

    steps = []
    if options.steps:
        with open(options.steps, encoding="utf-8") as file:
            steps = json.load(file)

    with Browser(options.timeout, options.camera, options.accept_certificates) as browser:
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=options.width, height=options.height, deviceScaleFactor=1,
            mobile=options.width < 600)
        browser.call(
            "Emulation.setEmulatedMedia", media="print" if options.print else "",
            features=[
                {"name": "prefers-color-scheme", "value": "dark" if options.dark else "light"},
                {"name": "forced-colors", "value": "active" if options.forced_colors else "none"}])
        browser.call("Emulation.setScriptExecutionDisabled", value=options.no_script)
        browser.open(options.url)
        if options.wait_until:
            browser.wait_until(options.wait_until)
        values = {}
        for step in steps:
            browser.execute(step, values)
        values.update({name: browser.evaluate(expression) for name, expression in expressions.items()})
        if options.screenshot:
            browser.screenshot(options.screenshot)
        if options.pdf:
            with open(options.pdf, "wb") as file:
                file.write(base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"]))
        # All earlier events of the page arrive before the response to this request.
        browser.call("Runtime.evaluate", expression="0")
        result = {"values": values, "console": browser.problems(), "requests": browser.requests()}
    print(json.dumps(result))


if __name__ == "__main__":
    # On SIGTERM, terminate the browser too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("browser.py: terminated by SIGTERM"))
    try:
        main()
    except Failure as failure:
        sys.exit(f"browser.py: {failure}")
