"""Markdown tables and the one way a log ratio is printed. Knows text only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.statistics import percent

ABSENT = "-"


def grid(titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A markdown table; a cell keeps its pipes and has no line breaks."""
    rows = [titles, ["---"] * len(titles), *lines]
    return "\n".join("| " + " | ".join(flat(cell).replace("|", "\\|") or ABSENT for cell in row) + " |" for row in rows)


def flat(text: str) -> str:
    """`text` on one line."""
    return " ".join(text.split())


def count(number: int, noun: str) -> str:
    """`1 op`, `2 ops`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def signed(value: float | None) -> str:
    """Log ratio -> `+3.10 %`."""
    return ABSENT if value is None else f"{percent(value):+.2f} %"


def signless(value: float | None) -> str:
    """Log ratio that is a size, not a direction -> `3.10 %`."""
    return ABSENT if value is None else f"{percent(value):.2f} %"
