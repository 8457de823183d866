# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over the pipe of its DevTools protocol: no other package needed."""

import json
import os
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


def program():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page at a time. `requests` and `complaints` gather what the page asked for and what the
    console and the content policy said since it was opened."""

    def __init__(self, executable, timeout=120):
        self.timeout = timeout
        self.folder = tempfile.TemporaryDirectory(prefix="stepcast-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def take_pipes():
            # Use numbers above those that they are moved to, so that neither is overwritten.
            high = [os.dup(to_browser), os.dup(from_browser)]
            while min(high) < 5:
                high = [os.dup(high[0]), os.dup(high[1])]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [executable, "--headless=new", "--remote-debugging-pipe", "--disable-gpu",
                   "--disable-background-networking", "--disable-component-update",
                   "--disable-extensions", "--no-first-run", "--disable-dev-shm-usage",
                   "--hide-scrollbars", "--force-color-profile=srgb",
                   f"--user-data-dir={self.folder.name}"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")
        self.log = open(os.path.join(self.folder.name, "log"), "wb")
        self.process = subprocess.Popen(command, preexec_fn=take_pipes, close_fds=False,
                                        stdout=self.log, stderr=self.log)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.last_id = 0
        self.session = None
        self.requests = []
        self.complaints = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(20)
        except (RuntimeError, subprocess.TimeoutExpired, OSError):
            self.process.kill()
            self.process.wait()
        self.log.close()
        os.close(self.write_end)
        os.close(self.read_end)
        self.folder.cleanup()

    def _message(self):
        import select
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], self.timeout)[0]:
                raise RuntimeError(f"the browser was silent for {self.timeout} s")
            data = os.read(self.read_end, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(parameters["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(self, path, width=1024, height=800, scheme="light"):
        self.requests, self.complaints, self.loaded = [], [], False
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia", media="screen",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        end = time.monotonic() + self.timeout
        while not self.loaded:
            if time.monotonic() > end:
                raise RuntimeError("the page did not load")
            self._note(self._message())

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key, code, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode=code, text=text if kind == "keyDown" else "")

    def screenshot(self, path, clip=None):
        import base64
        parameters = {"format": "png", "captureBeyondViewport": clip is not None}
        if clip:
            x, y, width, height = clip
            parameters["clip"] = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(
                self.call("Page.captureScreenshot", **parameters)["data"]))
