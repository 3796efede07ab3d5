"""What the plugins of one target process share: the cell being run, where its evidence goes, and its clocks.

Not a pytest plugin. It must not know torch, triton or pytest, nor what a timer or a tuner is.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from harness import codec
from harness.plugins import stamp
from harness.records import Cell, Event, Row, RowKey

#: The process's own stdout. `-p` plugins are imported before pytest starts to capture, so markers reach run.log
#: whether or not the cell was started with -s.
REAL_STDOUT = os.dup(1)


class EndsCell(RuntimeError):
    """No failure of the one shape it happens in: every later one would fail alike, or be another measurement."""


class Session:
    """The current cell. `row` is the row being made, as str(RowKey), "" between rows.

    `tuned`: the JIT functions whose tuners run now, innermost last: what those benchmark and compile is no row's.
    `started_cold`: its Triton cache was empty; `own_cache`: it holds only what this side of this campaign compiled.
    """

    def __init__(self, cell: Cell, attempt: Path, started_cold: bool, own_cache: bool = False) -> None:
        self.cell = cell
        self.attempt = attempt
        self.started_cold = started_cold
        self.own_cache = own_cache
        self.row = ""
        self.tuned: list[Any] = []
        self.seconds: dict[str, float] = defaultdict(float)
        self._seen: Counter[tuple[str, str, str, str]] = Counter()
        self._inner: list[float] = []

    def emit_row(self, row: Row) -> None:
        """Append `row` to rows.jsonl at once: a later shape's failure must not take it along."""
        codec.append_line(self.attempt / "rows.jsonl", row)

    def emit_event(self, code: str, row: str | None = None, **detail: str) -> None:
        """Print `CODE key=value ...` for people and append the event for code. `row` defaults to the current row."""
        event = Event(code=code, row=self.row if row is None else row, detail=detail)
        codec.append_line(self.attempt / "events.jsonl", event)
        os.write(REAL_STDOUT, f"\n{marker_line(event)}\n".encode())  # pytest leaves its line of dots unfinished

    def beat(self) -> None:
        """A sign of life where nothing is written for long: the log's time moves."""
        with suppress(OSError):  # a pipe has no time to set
            os.utime(REAL_STDOUT)

    def number(self, op: str, dtype: str, shape: str, config: str = "") -> RowKey:
        """The key of the next row of that name: repeats are occurrence-numbered from 0."""
        name = (op, dtype, shape, config)
        self._seen[name] += 1
        return RowKey(op, dtype, shape, self._seen[name] - 1, config)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge the wall time of the block, less that of the phases inside it, to `name`."""
        started = time.monotonic()
        self._inner.append(0.0)
        try:
            yield
        finally:
            elapsed = time.monotonic() - started
            self.charge(name, elapsed - self._inner.pop(), within=elapsed)

    def charge(self, name: str, seconds: float, within: float | None = None) -> None:
        """Add `seconds` to phase `name` and take them (or `within`) off the phase that is running."""
        self.seconds[name] += max(seconds, 0.0)
        if self._inner:
            self._inner[-1] += seconds if within is None else within


def marker_line(event: Event) -> str:
    """`CODE key=value ...` on one line; a value with blanks in it is quoted as in JSON."""
    words = [event.code, *(f"{key}={_word(value)}" for key, value in event.detail.items())]
    return " ".join(words + [f"row={_word(event.row)}"] * bool(event.row))


def _word(value: str) -> str:
    plain = value and not any(letter.isspace() or letter == '"' for letter in value)
    return value if plain else json.dumps(value, ensure_ascii=False)


@cache
def current() -> Session:
    """The session of this process, from CALIBER_CELL and CALIBER_ATTEMPT; raises RuntimeError outside a cell."""
    missing = [name for name in ("CALIBER_CELL", "CALIBER_ATTEMPT") if not os.environ.get(name)]
    if missing:
        raise RuntimeError(f"{' and '.join(missing)} not set: harness.plugins run inside a cell; use `caliber cell`")
    faulthandler.register(signal.SIGUSR2, REAL_STDOUT, all_threads=True)  # the runner asks where a hung cell hangs
    cell = codec.read(Cell, Path(os.environ["CALIBER_CELL"]))
    cold = _is_empty(os.environ.get("TRITON_CACHE_DIR", ""))
    return Session(cell, Path(os.environ["CALIBER_ATTEMPT"]), cold, stamp.is_own(cell, cold))


def first_line(error: BaseException) -> str:
    """`Class: first line of its text`, at most 300 characters."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]


def _is_empty(directory: str) -> bool:
    return bool(directory) and not (os.path.isdir(directory) and os.listdir(directory))
