"""Bytes of a foreign file -> numbered lines of text, or a refusal that says how to convert it.

Owns encodings, line ends and terminal colours; must not know what the text says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.foreign.entries import ForeignError

#: Named so, a file is meant as text: it is refused when it cannot be read, where any other file is passed over.
TEXT_SUFFIXES = frozenset({"", ".log", ".txt", ".out", ".json", ".jsonl"})
WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
SNIFFED = 4096


@dataclass(frozen=True)
class Text:
    """A file's lines, without line ends and colours; line n is lines[n - 1]."""

    path: Path
    lines: tuple[str, ...]
    torn: bool  # the last line has no end: its writer may have been killed within it

    def place(self, number: int) -> str:
        """`file:line`."""
        return f"{self.path}:{number}"

    @property
    def whole(self) -> str:
        """All lines as one text."""
        return "\n".join(self.lines)

    def cut(self, number: int) -> bool:
        """May line `number` be a part of a line?"""
        return self.torn and number == len(self.lines)


def read(path: Path, wanted: bool = False) -> Text | None:
    """The text of `path`; None for a binary file, unless its name, or `wanted`, says that it is text."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ForeignError(f"{path}: {error.strerror}; make it readable, or take it out of the run") from None
    if data.startswith(WIDE_BOMS) or _wide(data[:SNIFFED]):
        raise ForeignError(
            f"{path}: is UTF-16 (PowerShell's `>` writes that); convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW"
        )
    try:
        text = data.decode("utf-8-sig")
        fault = text.find("\0")
        reason = "a NUL byte"
    except UnicodeDecodeError as error:
        text, fault, reason = data[: error.start].decode("utf-8", "replace"), error.start, "no UTF-8"
    if fault >= 0:
        if not wanted and path.suffix.lower() not in TEXT_SUFFIXES:
            return None
        line = text.count("\n", 0, fault) + 1
        raise ForeignError(f"{path}:{line}: {reason}; convert the file to UTF-8, or take it out of the run")
    return _lines(path, text)


def _lines(path: Path, text: str) -> Text:
    lines = [ESCAPES.sub("", line.rstrip("\r")) for line in text.split("\n")]
    torn = lines[-1] != ""
    return Text(path, tuple(lines if torn else lines[:-1]), torn)


def _wide(head: bytes) -> bool:
    """UTF-16 without a byte order mark: of ASCII text, every other byte is NUL."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    return half >= 16 and max(even, odd) > 0.9 * half and min(even, odd) < 0.1 * half
