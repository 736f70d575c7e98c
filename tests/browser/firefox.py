"""The Firefox of the system, driven by its own protocol, Marionette."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

NAMES = ("firefox-esr", "firefox")
MISSING = "Firefox is not installed. Install it (Debian: apt-get install firefox-esr)."
START_SECONDS = 180
"""However busy the machine is, a browser that has not started by then never will."""

PREFERENCES = """
user_pref("marionette.port", 0);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
"""

CONSOLE = """
return Services.console.getMessageArray()
    .filter(message => message instanceof Ci.nsIScriptError)
    .filter(message => message.sourceName.startsWith(arguments[0]))
    .map(message => message.errorMessage);
"""


class FirefoxMissing(Exception):
    """No Firefox is installed."""


class Firefox:
    """A running Firefox with one window. Its commands are those of WebDriver."""

    def __init__(self, port: int) -> None:
        self._numbers = count(1)
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)
        self._file = self._socket.makefile("rb")
        self._read()
        self.send("WebDriver:NewSession", {"pageLoadStrategy": "normal"})

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, command: str, parameters: dict[str, object] | None = None) -> Any:
        """Send a command and return its result. Raises RuntimeError if Firefox reports an error."""
        text = json.dumps([0, next(self._numbers), command, parameters or {}])
        self._socket.sendall(f"{len(text.encode())}:{text}".encode())
        _, _, error, result = self._read()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result["value"] if isinstance(result, dict) and "value" in result else result

    def _read(self) -> Any:
        """Read a message: its length, a colon, JSON."""
        length = b""
        while not length.endswith(b":"):
            length += self._file.read(1)
        return json.loads(self._file.read(int(length[:-1])))

    def go(self, address: str) -> None:
        """Open a page, and wait until it is loaded."""
        self.send("WebDriver:Navigate", {"url": address})

    def back(self) -> None:
        self.send("WebDriver:Back")

    def run(self, script: str, *args: object) -> Any:
        """Run JavaScript in the page, and return its result."""
        return self.send("WebDriver:ExecuteScript", {"script": script, "args": [*args]})

    def new_tab(self) -> str:
        """Open a tab in the background, and return its name."""
        name: str = self.send("WebDriver:NewWindow", {"type": "tab", "focus": False})["handle"]
        return name

    def tab(self) -> str:
        """Return the name of the current tab."""
        name: str = self.send("WebDriver:GetWindowHandle")
        return name

    def switch(self, tab: str, *, focus: bool = True) -> None:
        """Send further commands to another tab. If it gets the focus, it becomes visible."""
        self.send("WebDriver:SwitchToWindow", {"handle": tab, "focus": focus})

    def complaints(self, address: str) -> list[str]:
        """Return the errors and warnings in the console that come from a site."""
        found: list[str] = self.run_in_browser(CONSOLE, address)
        return found

    def run_in_browser(self, script: str, *args: object) -> Any:
        """Run JavaScript in the browser itself, with ``Services``, and return its result."""
        self.send("Marionette:SetContext", {"value": "chrome"})
        try:
            return self.run(script, *args)
        finally:
            self.send("Marionette:SetContext", {"value": "content"})


def find_firefox() -> str:
    for name in NAMES:
        if program := shutil.which(name):
            return program
    raise FirefoxMissing(MISSING)


@contextmanager
def run_firefox(directory: Path) -> Iterator[Firefox]:
    """Run Firefox without a window, with an empty profile in ``directory``."""
    (directory / "user.js").write_text(PREFERENCES)
    options = ["--headless", "--marionette", "--remote-allow-system-access", "--no-remote"]
    process = subprocess.Popen(
        [find_firefox(), *options, "--profile", str(directory)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with closing(
            Firefox(_wait_for_port(directory / "MarionetteActivePort", process))
        ) as firefox:
            yield firefox
    finally:
        process.terminate()
        try:
            process.wait(START_SECONDS)
        finally:
            process.kill()


def _wait_for_port(path: Path, process: subprocess.Popen[bytes]) -> int:
    ends_at = time.monotonic() + START_SECONDS
    while time.monotonic() < ends_at and process.poll() is None:
        if path.exists() and (text := path.read_text()):
            return int(text)
        time.sleep(0.05)
    raise RuntimeError("Firefox has not started, or opened no port for Marionette.")
