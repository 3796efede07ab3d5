"""FlagGems' console tables -> Table. Owns the printed format; must not know files, sides or rounds.

    Operator: mm  Performance Test (dtype=torch.float16, mode=kernel,level=core)
    Status       Torch Latency (ms)    Gems Latency (ms)         Gems Speedup  [TFLOPS] [GBPS x 2]  Size Detail
    ----------
    SUCCESS               0.008100            0.009123               0.888          [torch.Size([384, 384])]

Rows are not aligned with their header, and TFLOPS and GBPS come and go from row to row: a row is read from its own
words, never cut by the header's columns. A table is printed after all its shapes have run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.foreign.entries import DECIMAL_COMMA, Entry, ForeignError, Table, dtype_text, shape_text
from harness.foreign.reading import Text

TITLE = re.compile(
    r"Operator: (?P<op>\S.*?) +Performance Test "
    r"\(dtype=(?P<dtype>[^,]+), *mode=(?P<mode>[^,]+), *level=(?P<level>[^)]+)\)"
)
HEADER = re.compile(r"Status +Torch Latency \(ms\) +Gems Latency \(ms\) +Gems Speedup\b")
NUMBER = r"(?:-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)|N/A)"
#: Three columns, up to three more, ten blanks, the detail. A detail is no number: those are columns.
ROW = re.compile(
    rf"(?P<status>SUCCESS|FAILED|SKIPPED) +{NUMBER} +(?P<latency>{NUMBER}) +{NUMBER}(?: +{NUMBER}){{0,3}}? {{10}}"
    r"(?P<detail>[^\s\d+\-.].*)"
)
STATUS = re.compile(r"(SUCCESS|FAILED|SKIPPED)\b")


@dataclass
class Reader:
    """Reads a file line by line. `torn` is set when the last line is part of a row."""

    text: Text
    tables: list[Table] = field(default_factory=list)
    torn: bool = False
    _open: Table | None = None
    _headed: bool = False

    def line(self, number: int, line: str) -> None:
        """Take line `number`."""
        title = TITLE.match(line)
        if title:
            self.close(number)
            self._begin(number, title)
        elif self._open:
            self._inside(number, line)
        elif ROW.fullmatch(line.rstrip()):
            raise ForeignError(f"{self.text.place(number)}: a row that belongs to no table; its title line is lost")
        elif line.startswith("Operator: "):
            self.torn |= self.text.cut(number)

    def close(self, number: int) -> None:
        """The table that is open has ended, before line `number`."""
        if self._open and self._open.entries:
            self.tables.append(self._open)
        elif self._open and number <= len(self.text.lines):
            raise ForeignError(f"{self._open.place}: a table without rows")
        elif self._open:
            self.torn = True
        self._open = None

    def _begin(self, number: int, title: re.Match[str]) -> None:
        op, dtype, mode, level = title.groups()
        place = self.text.place(number)
        self._open = Table(op, dtype_text(dtype), mode.strip(), level.strip(), "console", place, ())
        self._headed = False

    def _inside(self, number: int, line: str) -> None:
        if not self._headed:
            self._header(number, line)
        elif STATUS.match(line):
            self._row(number, line)
        elif line.strip("-") or not line:
            self.torn |= self.text.cut(number)
            self.close(number)

    def _header(self, number: int, line: str) -> None:
        self._headed = bool(HEADER.match(line))
        if not self._headed and not self.text.cut(number):
            raise ForeignError(
                f"{self.text.place(number)}: unknown columns {line.strip()[:60]!r}; "
                "Status, Torch Latency (ms), Gems Latency (ms), Gems Speedup are known"
            )

    def _row(self, number: int, line: str) -> None:
        """One row. pytest's own summary has FAILED and SKIPPED lines too: they have no columns, and end a table."""
        found = ROW.fullmatch(line.rstrip())
        detail = _detail(found["detail"]) if found else None
        if self._open and found and not (detail is None and self.text.cut(number)):
            entry = _entry(found, detail or shape_text(found["detail"]), self.text.place(number))
            self._open = replace(self._open, entries=(*self._open.entries, entry))
        elif self.text.cut(number):
            self.torn = True
        elif line.startswith("SUCCESS") or DECIMAL_COMMA.search(line.partition("[")[0]):
            raise ForeignError(f"{self.text.place(number)}: {_fault(line)}")
        else:
            self.close(number)


def read(text: Text) -> tuple[Sequence[Table], bool]:
    """The tables of a file, and whether its last line is part of a row."""
    reader = Reader(text)
    for number, line in enumerate(text.lines, 1):
        reader.line(number, line)
    reader.close(len(text.lines) + 1)
    return reader.tables, reader.torn


def _entry(found: re.Match[str], shape: str, place: str) -> Entry:
    status, latency = found["status"], found["latency"]
    if status != "SUCCESS":
        return Entry(shape, None, f"{status} in the table", place)
    if latency == "N/A":
        return Entry(shape, None, "no latency of the operator (N/A)", place)
    return Entry(shape, float(latency), "", place)


def _fault(line: str) -> str:
    found = DECIMAL_COMMA.search(line.partition("[")[0])
    if found:
        return f"decimal comma in {found[0]}; run the benchmark under LC_ALL=C"
    return f"not a row of a FlagGems table: {line.strip()[:80]!r}"


def _detail(text: str) -> str | None:
    """The shape text of a printed detail; None where it is no Python expression of sizes and plain values."""
    try:
        return shape_text(None if text == "N/A" else _value(ast.parse(text, mode="eval").body))
    except (SyntaxError, ValueError, TypeError):
        return None


def _value(node: ast.expr) -> Any:
    """The value of a literal; `torch.Size([..])` is its list, `torch.float16` its name."""
    match node:
        case ast.Call(func=ast.Attribute(attr="Size"), args=[sizes], keywords=[]):
            return _value(sizes)
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_value(element) for element in elements]
        case ast.Dict(keys=keys, values=values):
            return {str(_value(key)): _value(value) for key, value in zip(keys, values, strict=True) if key}
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            return name
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Constant(value=None | bool() | int() | float() | str() as value):
            return value
    raise ValueError(ast.dump(node))
