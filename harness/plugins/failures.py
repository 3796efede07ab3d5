"""A shape that fails: what kind of failure it is, its row without a number, and whether the next one may be measured.

FlagGems ends a test at the first failing shape and loses the finished rows of its data type; here each shape is for
itself, unless what failed is the cell (a refused replay) or the device. It must not know the provider.
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterator
from typing import Any

from harness.plugins import session
from harness.records import Row, RowKey


def is_failure(error: BaseException) -> bool:
    """False for what ends a test without a failure: pytest's skip and exit, an interrupt, the end of a generator."""
    name = type(error).__name__
    if isinstance(error, Exception):
        return name not in ("Exit", "SkipTest")  # pytest.exit's own exception is an Exception
    return name == "Failed"  # and pytest.fail's is none


def survived(error: BaseException, key: RowKey) -> bool:
    """Tell the failure of row `key`, as an event and as a row without a number. True if the next may be measured."""
    current, word = session.current(), kind(error)
    ends_cell = any(isinstance(link, session.EndsCell) for link in _chain(error))
    lost = "" if ends_cell else _device_fault()
    word = "FAULT" if lost else word
    text = session.first_line(error)
    current.emit_event("ROW_OOM" if word == "OOM" else "ROW_FAILED", str(key), error=text)
    if lost:
        current.emit_event("CONTEXT_LOST", str(key), reason=lost)
    if ends_cell:
        return False
    current.emit_row(row(key, f"{word}: {text}"))
    return word != "FAULT"


def kind(error: BaseException) -> str:
    """FAULT (the backend's own wordings of a kernel that failed on the device), OOM, else FAILED."""
    links = list(_chain(error))
    texts = " ".join(map(str, links))
    if any(text in texts for text in session.current().cell.instrument.capture_texts.fatal):
        return "FAULT"
    out_of_memory = any(isinstance(link, MemoryError) or type(link).__name__ == "OutOfMemoryError" for link in links)
    return "OOM" if out_of_memory or "out of memory" in texts.lower() else "FAILED"


def row(key: RowKey, reason: str) -> Row:
    """A row without a number, by the planned timer."""
    planned = session.current().cell.instrument
    return Row(key.op, key.dtype, key.shape, key.occurrence, key.config, value=None, unit="ms", timer=planned.timer,
               l2=planned.l2, repeat=1, reason=reason, metrics={}, variants=())  # fmt: skip


def free_memory() -> None:
    """Give back what the failed shape held. To be called when its exception, which holds its frames, is gone."""
    gc.collect()
    interface = _device_module()
    if interface is not None:
        interface.empty_cache()


def _device_fault() -> str:
    """Why the device cannot be used any more, or ""."""
    interface = _device_module()
    if interface is None:
        return ""
    try:
        interface.synchronize()
        importlib.import_module("torch").zeros(16, device=_runtime())
        interface.synchronize()
    except RuntimeError as error:
        return session.first_line(error)
    return ""


def _device_module() -> Any | None:
    """torch.<runtime>; None for "meta", where there is no device."""
    return None if _runtime() == "meta" else getattr(importlib.import_module("torch"), _runtime())


def _runtime() -> str:
    return os.environ.get("CALIBER_RUNTIME") or session.current().cell.instrument.runtime


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
