"""What `--record log` and `--record json` wrote -> Table. Owns both formats; must not know files' names or sides.

A log has one line `[INFO] {json}` per table. A result file has {op: {result, reason, test_case, details: [the same]}};
it is written only by a session that ended, and *merged* into the file that was there: it may hold another run's rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.foreign.entries import DECIMAL_COMMA, Entry, ForeignError, Kind, Table, dtype_text, shape_text
from harness.foreign.reading import Text

RECORD = re.compile(r'\[[A-Z]+\] (?P<json>\{".*)')
RESULT_KEYS = {"details", "test_case"}


@dataclass(frozen=True)
class ResultFile:
    """A `--record json` file. `failed`, `skipped`: mark of a test (mostly its op) -> the reason it gave."""

    tables: tuple[Table, ...]
    failed: Mapping[str, str]
    skipped: Mapping[str, str]


def read_log(text: Text) -> tuple[Sequence[Table], bool]:
    """The tables of a record log, and whether its last line is part of a record."""
    tables: list[Table] = []
    for number, line in enumerate(text.lines, 1):
        found = RECORD.match(line)
        if not found:
            continue
        place = text.place(number)
        try:
            record = _loads(found["json"])
        except ValueError as error:
            if text.cut(number):
                return tables, True
            raise ForeignError(f"{place}: {_fault(found['json'], error)}") from None
        if isinstance(record, dict) and {"op_name", "result"} <= record.keys():
            tables.append(_table(record, "record log", place))
    return tables, False


def read_result(text: Text) -> ResultFile | None:
    """A `--record json` file, or None where the text is something else."""
    whole = text.whole
    if not whole.lstrip().startswith("{"):
        return None
    try:
        found = _loads(whole)
    except json.JSONDecodeError as error:
        if '"shape_detail"' not in whole and '"test_case"' not in whole:
            return None
        line = text.lines[min(error.lineno, len(text.lines)) - 1]
        raise ForeignError(f"{text.place(error.lineno)}: {_fault(line, error)}") from None
    except ValueError as error:
        raise ForeignError(f"{text.path}: {error}") from None
    if not _is_result(found):
        return None
    tables = tuple(
        _table(record, "record json", f"{text.path}: {op}.details[{index}]")
        for op, test in found.items()
        for index, record in enumerate(test.get("details") or ())
    )
    return ResultFile(tables, dict(_ended(found, "failed")), dict(_ended(found, "skipped")))


def _is_result(found: Any) -> bool:
    tests = list(found.values()) if isinstance(found, dict) else []
    return all(isinstance(test, dict) for test in tests) and any(test.keys() & RESULT_KEYS for test in tests)


def _ended(found: Mapping[str, Any], result: str) -> Iterator[tuple[str, str]]:
    for op, test in found.items():
        if test.get("result") == result:
            yield op, " ".join(str(test.get("reason") or "no reason given").split())[:200]


def _table(record: Any, kind: Kind, place: str) -> Table:
    try:
        op, dtype, mode, level, rows = (record[key] for key in ("op_name", "dtype", "mode", "level", "result"))
        entries = tuple(_entry(row, place, index) for index, row in enumerate(rows))
    except (KeyError, TypeError) as error:
        raise ForeignError(f"{place}: not a benchmark record: {type(error).__name__} {error}") from None
    return Table(op, dtype_text(str(dtype)), str(mode), str(level), kind, place, entries)


def _entry(row: Mapping[str, Any], place: str, index: int) -> Entry:
    shape, latency, message = shape_text(row["shape_detail"]), row["latency"], row.get("error_msg")
    here = f"{place} result[{index}]"
    if message is not None:
        return Entry(shape, None, f"FAILED: {' '.join(str(message).split())[:200]}", here)
    if latency is None:
        return Entry(shape, None, "no latency of the operator (null)", here)
    if isinstance(latency, bool) or not isinstance(latency, (int, float)):
        raise ForeignError(f"{here}: latency {latency!r} is no number of ms{_comma(str(latency))}")
    return Entry(shape, float(latency), "", here)


def _loads(text: str) -> Any:
    """JSON as FlagGems writes it: NaN is read (and makes an invalid row), a key that repeats is an error."""
    return json.loads(text, object_pairs_hook=_unique_keys)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate key {next(name for name in names if names.count(name) > 1)!r}")
    return found


def _fault(text: str, error: ValueError) -> str:
    """A decimal comma is told by what stands where the number ended."""
    position = getattr(error, "colno" if isinstance(error, json.JSONDecodeError) else "pos", 0)
    near = text[max(0, position - 20) : position + 20]
    return f"{error}{_comma(near)}"


def _comma(text: str) -> str:
    found = DECIMAL_COMMA.search(text)
    return f"; decimal comma in {found[0]}? Run the benchmark under LC_ALL=C" if found else ""
