"""May foreign runs be compared? The campaign's own comparison of identities, told in runs, and what only they need.

`record` against `record` is refused by name; a replay of the other side's record is normal, and only noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness import caliber
from harness.caliber import Mismatch
from harness.foreign import evidence
from harness.foreign.evidence import Place, Placed
from harness.foreign.run import Opened
from harness.records import SideName

TUNING = ("autotune_mode", "autotune_digest")
SHARED = (
    "tuner cache shared and a side recorded: one side may have inherited the other's winners; relative conclusions "
    "stand, absolute latencies are unquotable"
)
PINNED = "{side} tuned itself, the other side replays: tuning costs {side} time (-0.5 % seen over six rounds)"
Runs = Sequence[tuple[Place, Opened]]


@dataclass(frozen=True)
class Calibration:
    """What forbids the comparison (empty: nothing), and what only qualifies it."""

    mismatches: tuple[Mismatch, ...]
    warnings: tuple[str, ...]


def check(runs: Runs) -> Calibration:
    """Compare the identities; no latency is needed, and none has been read."""
    cells = [evidence.unread(at, run, started=False) for at, run in runs]
    names = {cell.cell.key: str(run.path) for cell, (_, run) in zip(cells, runs, strict=True)}
    found = [_named(mismatch, names) for mismatch in caliber.compare(cells)]
    found = [mismatch for mismatch in found if mismatch.axis != "identity"] + _unidentified(runs)
    warnings = []
    recorder = _pinned(runs)
    if recorder:
        found = [mismatch for mismatch in found if mismatch.axis not in TUNING]
        warnings.append(PINNED.format(side=recorder))
    elif _both_recorded(runs) and not any(caliber.RECORDED in mismatch.values for mismatch in found):
        paths = tuple(str(run.path) for _, run in runs if run.recorded)
        found.append(Mismatch("autotune_mode", {caliber.RECORDED: paths}))
    if any(run.identity and run.identity.tuner_cache == "shared" for _, run in runs) and any(
        run.recorded for _, run in runs
    ):
        warnings.append(SHARED)
    return Calibration(tuple(sorted(found, key=lambda mismatch: mismatch.axis != "identity")), tuple(warnings))


def check_tables(runs: Sequence[Placed]) -> tuple[Mismatch, ...]:
    """Mode and level, which FlagGems writes over every table."""
    axes: Mapping[str, Callable[[Placed], set[str]]] = {
        "mode": lambda placed: {table.mode for table in placed.run.tables},
        "level": lambda placed: {table.level for table in placed.run.tables},
    }
    found = []
    for axis, seen in axes.items():
        values: dict[str, tuple[str, ...]] = {}
        for placed in runs:
            text = " | ".join(sorted(seen(placed)))
            if text:
                values[text] = (*values.get(text, ()), str(placed.run.opened.path))
        found += [Mismatch(axis, values)] if len(values) > 1 else []
    return tuple(found)


def _named(mismatch: Mismatch, names: Mapping[str, str]) -> Mismatch:
    return Mismatch(
        mismatch.axis, {value: tuple(names[key] for key in keys) for value, keys in mismatch.values.items()}
    )


def _unidentified(runs: Runs) -> list[Mismatch]:
    values: dict[str, tuple[str, ...]] = {}
    for _, run in runs:
        if run.identity is None:
            text = f"unreadable ({run.fault})" if run.fault else "missing"
            values[text] = (*values.get(text, ()), str(run.path))
    return [Mismatch("identity", values)] if values else []


def _side(runs: Runs, side: SideName) -> list[Opened]:
    return [run for at, run in runs if at.side == side]


def _both_recorded(runs: Runs) -> bool:
    return all(any(run.recorded for run in _side(runs, side)) for side in caliber.SIDES)


def _pinned(runs: Runs) -> SideName | None:
    """The side that recorded in every round, when the other replays one record in every round; else None."""
    for side, other in (("A", "B"), ("B", "A")):
        pins = [run.identity for run in _side(runs, other)]  # type: ignore[arg-type]
        digests = {pin.autotune_digest if pin and pin.autotune_mode == "replay" else "" for pin in pins}
        own = _side(runs, side)  # type: ignore[arg-type]
        if all(run.identity and run.recorded for run in own) and len(digests) == 1 and "" not in digests:
            return side if not any(run.recorded for run in _side(runs, other)) else None  # type: ignore[return-value,arg-type]
    return None
