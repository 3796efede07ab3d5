"""A headless Chromium without a driver: a page is opened at an address, and what it became is read."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
#: Who asked, in the network log, when it was the browser itself: for its clock, its dictionaries, its account.
BROWSER = "not an origin"


@dataclass(frozen=True)
class Opened:
    """A page after its script ran: the document, what the console said, the addresses that were asked for."""

    dom: str
    console: tuple[str, ...]
    requests: frozenset[str]

    def rows(self) -> list[str]:
        """The operators of the table of verdicts that are shown, in order."""
        rows = re.findall(r'<tr data-op="([^"]*)"([^>]*)>', self.dom)
        return [html.unescape(op) for op, rest in rows if " hidden" not in rest]

    def details(self) -> list[str]:
        """The markup of every opened operator."""
        return self.dom.split('<tr class="detail"')[1:]


def open_page(page: Path, state: str, scratch: Path) -> Opened:
    """Open `page` with `state` as the address's fragment; nothing of the user's own profile is touched."""
    assert PROGRAM
    log = scratch / "net.json"
    command = [
        PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
        "--host-resolver-rules=MAP * ~NOTFOUND",  # nothing leaves this machine, whoever asks
        f"--user-data-dir={scratch / 'profile'}", f"--log-net-log={log}", "--enable-logging=stderr",
        "--window-size=1200,900", "--virtual-time-budget=10000", "--dump-dom", f"{page.as_uri()}{state}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    said = done.stderr.decode("utf-8", "replace").splitlines()
    console = tuple(line for line in said if ":CONSOLE" in line)
    return Opened(done.stdout.decode("utf-8"), console, _requests(log))


def _requests(log: Path) -> frozenset[str]:
    """Those that the page started: its own file is opened by the browser, and is not among them."""
    events = json.loads(log.read_text(encoding="utf-8"))["events"]
    started = [event["params"] for event in events if "initiator" in (event.get("params") or ())]
    assert started, f"{log} says nothing of who asked"
    return frozenset(params["url"] for params in started if params["initiator"] != BROWSER)
