"""Caliber: may these cells be compared at all? Owns the refusal; must not know latencies, files or vendors.

It reads only what the target processes observed about themselves (records.Identity). Two runs of different caliber make
a report that looks exactly like a valid one (facts: incidents 1), so one unequal field refuses the operator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from harness.records import CellEvidence, Identity, Outcome, Role, SideName, identity_fields

NO_SWITCH = "sides do not differ on any axis; declare A/A?"
RECORDED = "record (a measured cell must replay: record against record compares configuration choices)"
State = Literal["equal", "DIFFERS", "axis", "unseen"]
SIDES: tuple[SideName, ...] = ("A", "B")


@dataclass(frozen=True)
class Mismatch:
    """One axis on which cells differ that must not: value as text -> keys of the cells that saw it."""

    axis: str
    values: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        parts = (f"{value} -> {', '.join(cells)}" for value, cells in self.values.items())
        return f"!!! [caliber] {self.axis}: {'; '.join(parts)}"


@dataclass(frozen=True)
class AxisLine:
    """One line of the report's caliber table; a side that saw several values shows them all.

    `unseen`: no cell of a side was measured, so nothing was compared.
    """

    axis: str
    role: Role
    a: str
    b: str
    state: State


def measured(evidences: Sequence[CellEvidence]) -> tuple[CellEvidence, ...]:
    """The cells whose rows may enter a number: round 0 records and is never one of them."""
    return tuple(
        item for item in evidences if item.cell.round >= 1 and item.status and item.status.outcome is Outcome.MEASURED
    )


def compare(evidences: Sequence[CellEvidence]) -> tuple[Mismatch, ...]:
    """Every reason why the measured cells of one op must not be compared; empty when they may."""
    cells = measured(evidences)
    seen = [item for item in cells if item.identity]
    unknown = tuple(item.cell.key for item in cells if not item.identity)
    found = [Mismatch("identity", {"missing": unknown})] if unknown else []
    found += _unequal(seen, identity_fields(Role.COMPARED), "")
    for side in SIDES:
        found += _unequal([i for i in seen if i.cell.side.name == side], identity_fields(Role.AXIS), f" within {side}")
    found += _both_recorded(seen)
    found += _no_switch(seen)
    return tuple(found)


def table(evidences: Sequence[CellEvidence]) -> tuple[AxisLine, ...]:
    """Each compared field and axis with what either side saw, for the report."""
    seen = [item for item in measured(evidences) if item.identity]
    lines = []
    for role in (Role.COMPARED, Role.AXIS):
        for axis in _axes(seen, identity_fields(role)):
            lines.append(_line(axis, role, seen))
    return tuple(lines)


def document() -> str:
    """The caliber table of the README: each axis, its role, what it is and the code that checks it."""
    checked = {
        Role.COMPARED: "`caliber.compare`: equal over all measured cells of an operator, or refused",
        Role.AXIS: "`caliber.compare`: equal over a side's rounds; one differs between the sides, or A/A is declared",
    }
    rows = [
        (f"`{item.name}`", item.metadata["role"].value, item.metadata["text"], checked[item.metadata["role"]])
        for item in fields(Identity)
        if item.metadata["role"] in checked
    ]
    rows += [
        (
            "identity",
            "",
            "what the target process wrote of itself",
            "`caliber.compare`: every measured cell has one, or refused",
        ),
        (
            "row",
            "",
            "timer, L2 state and repeat of a row",
            "`pairing.pair`: equal within a pair and over its rounds, or MIXED_TIMER",
        ),
        ("rows", "", "the rows that round 0 found", "`screening.screen`: as many in every cell, or INCOMPLETE"),
        (
            "seal",
            "",
            "manifest, configuration, harness, provider",
            "`seal.check`: as in the first run, or the campaign is refused",
        ),
    ]
    lines = ["| axis | role | what it is | checked by |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _unequal(cells: Sequence[CellEvidence], names: tuple[str, ...], suffix: str) -> list[Mismatch]:
    # Texts are made of what differs only: there are forty fields, and on a good day none does.
    unlike = tuple(name for name in names if any(_seen(item, name) != _seen(cells[0], name) for item in cells))
    groups = ((axis, _grouped(axis, cells)) for axis in _axes(cells, unlike))
    return [Mismatch(axis + suffix, values) for axis, values in groups if len(values) > 1]


def _seen(item: CellEvidence, name: str) -> Any:
    return getattr(item.identity, name)


def _both_recorded(cells: Sequence[CellEvidence]) -> list[Mismatch]:
    values = _grouped("autotune_mode", cells)
    return [Mismatch("autotune_mode", {RECORDED: values["record"]})] if set(values) == {"record"} else []


def _no_switch(cells: Sequence[CellEvidence]) -> list[Mismatch]:
    """Only with both sides present: a single side has nothing to differ from."""
    if {item.cell.side.name for item in cells} != set(SIDES) or any(item.cell.declared_aa for item in cells):
        return []
    if any(len(_grouped(axis, cells)) > 1 for axis in _axes(cells, identity_fields(Role.AXIS))):
        return []
    return [Mismatch("switch", {NO_SWITCH: tuple(item.cell.key for item in cells)})]


def _grouped(axis: str, cells: Sequence[CellEvidence]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    for item in cells:
        value = _value(axis, item)
        groups[value] = (*groups.get(value, ()), item.cell.key)
    return groups


def _axes(cells: Sequence[CellEvidence], names: tuple[str, ...]) -> Iterator[str]:
    """Field names; a mapping field gives one axis per key that any cell has, so that a mismatch names the key."""
    for name in names:
        values = [getattr(item.identity, name) for item in cells]
        if any(isinstance(value, Mapping) for value in values):
            yield from (f"{name}.{key}" for key in sorted({key for value in values for key in value}))
        else:
            yield name


def _value(axis: str, item: CellEvidence) -> str:
    name, dot, key = axis.partition(".")
    value = getattr(item.identity, name)
    return _text(value.get(key) if dot else value)


def _text(value: Any) -> str:
    """Unambiguous: two different values never share a text, or their difference would be hidden."""
    if value is None:
        return "unset"
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if value in ("", "unset") else str(value)


def _line(axis: str, role: Role, cells: Sequence[CellEvidence]) -> AxisLine:
    a, b = (list(_grouped(axis, [item for item in cells if item.cell.side.name == side])) for side in SIDES)
    return AxisLine(axis, role, " | ".join(a), " | ".join(b), _state(role, a, b))


def _state(role: Role, a: Sequence[str], b: Sequence[str]) -> State:
    if not a or not b:
        return "unseen"
    if len(a) > 1 or len(b) > 1:
        return "DIFFERS"
    if a == b:
        return "equal"
    return "axis" if role is Role.AXIS else "DIFFERS"
