"""What a watched tuner's look-up can mean: record its choice, or hand it what was recorded, or its first candidate.

Knows records and events; not Triton's classes, which autotune.py watches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from harness import codec
from harness.plugins import session
from harness.plugins.tuned import candidates_hash, find, same, tuned_config
from harness.records import AutotuneRecord, Marker, TunedConfig, TunedKey

#: So many keys that tuned themselves are named in REPLAY_PARTIAL; all of them are in their own events.
NAMED_KEYS = 3


class ReplayRefused(session.EndsCell):
    """The record was made for something else than what is about to run."""


@dataclass(frozen=True)
class Seen:
    """What a tuner looked up for the first time: which kernel, which key, among which candidates."""

    kind: Literal["triton", "libtuner"]
    kernel: str
    source_hash: str
    key: str
    candidates: tuple[TunedConfig, ...]


class First:
    """Tuners whose choice is not under test: each takes the first candidate that its own pruning leaves."""

    def __init__(self) -> None:
        self.seen: dict[Any, tuple[Any, Any]] = {}

    def look_up(self, seen: Seen, candidates: Sequence[Any]) -> Any:
        """The first candidate; a tuner that prunes every one of them away is refused."""
        return candidates[0] if candidates else refuse(seen.kernel, f"no candidate is left for key {seen.key}")

    def chosen(self, seen: Seen, best: Any) -> None:
        """Nothing to note."""

    def conclude(self) -> None:
        """Say for how many keys the choice was made so."""
        session.current().emit_event("AUTOTUNE_FIRST", "", keys=str(len(self.seen)))


class Recorder:
    """Round 0: lets every tuner choose and notes the choice. With `compile_only` there is none, only candidates."""

    def __init__(self, record: AutotuneRecord, compile_only: bool) -> None:
        self.seen: dict[Any, tuple[Any, Any]] = {}
        self._record = record
        self._compile_only = compile_only
        self._keys: list[TunedKey] = []

    def look_up(self, seen: Seen, candidates: Sequence[Any]) -> Any | None:
        """Nothing to hand out: the tuner tunes."""
        return None

    def chosen(self, seen: Seen, best: Any) -> None:
        """Note the tuner's choice. One outside its own candidates (a proposer's) cannot be replayed, and is told."""
        winner = None if self._compile_only else tuned_config(best)
        if winner is not None and not any(same(winner, candidate) for candidate in seen.candidates):
            detail = {"kernel": seen.kernel, "key": seen.key, "chosen": repr(dict(winner.kwargs))}
            session.current().emit_event("AUTOTUNE_RECORD_INCOMPLETE", reason="chosen_outside_candidates", **detail)
            return
        digest = candidates_hash(seen.candidates)
        key = TunedKey(seen.kind, seen.kernel, seen.source_hash, seen.key, digest, seen.candidates, winner)
        if key not in self._keys:
            self._keys.append(key)

    def conclude(self) -> None:
        """Write autotune.json; also with no key at all, for a replay without a record is refused."""
        record = dataclasses.replace(self._record, keys=tuple(self._keys))
        codec.write(session.current().attempt / "autotune.json", record)
        session.current().emit_event("AUTOTUNE_RECORDED", "", keys=str(len(self._keys)))


class Replayer:
    """A measured cell: hands every tuner its recorded choice, and counts what the record did not cover."""

    def __init__(self, record: AutotuneRecord, op: str, timer: str) -> None:
        self.seen: dict[Any, tuple[Any, Any]] = {}
        self._keys = record.keys
        self._used: set[int] = set()
        self._missing: list[str] = []
        if (record.op, record.timer) != (op, timer):
            refuse("", f"recorded for op {record.op} by timer {record.timer}, this cell is {op} by {timer}")

    def look_up(self, seen: Seen, candidates: Sequence[Any]) -> Any | None:
        """The candidate object that was recorded; None (the tuner tunes) for a key without a record, which is told."""
        same_key = [key for key in self._keys if (key.kernel, key.key) == (seen.kernel, seen.key)]
        if not same_key:
            self._missing.append(f"{seen.kernel} {seen.key}")
            code, reason = Marker.AUTOTUNE_REPLAY_FALLBACK.value, "key_missing"
            session.current().emit_event(code, reason=reason, kernel=seen.kernel, key=seen.key)
            return None
        recorded = _matching(same_key, seen)
        self._used.add(self._keys.index(recorded))
        if recorded.winner is None:
            return None
        return find(candidates, recorded.winner) or refuse(seen.kernel, f"winner of {seen.key} is no candidate")

    def chosen(self, seen: Seen, best: Any) -> None:
        """Nothing to note."""

    def conclude(self) -> None:
        """Say how much of the record was used; less than all that was looked up is REPLAY_PARTIAL."""
        if not self._keys and not self._missing:
            return
        used, unused = str(len(self._used)), str(len(self._keys) - len(self._used))
        event = {"used": used, "missing": str(len(self._missing)), "unused": unused}
        session.current().emit_event("AUTOTUNE_REPLAY", "", **event)
        if self._missing:
            more = f" and {len(self._missing) - NAMED_KEYS} more" if len(self._missing) > NAMED_KEYS else ""
            first = ", ".join(self._missing[:NAMED_KEYS]) + more
            session.current().emit_event("REPLAY_PARTIAL", "", **event, self_tuned=first)


def _matching(keys: Sequence[TunedKey], seen: Seen) -> TunedKey:
    """The record of the very kernel text and candidates that were seen; another one is refused, not adapted."""
    same_source = [key for key in keys if key.source_hash == seen.source_hash]
    if not same_source:
        refuse(seen.kernel, f"source {keys[0].source_hash[:12]} recorded, {seen.source_hash[:12]} found")
    digest = candidates_hash(seen.candidates)
    match = [key for key in same_source if key.candidates_hash == digest]
    if not match:
        had, has = (f"{len(found)} candidates" for found in (same_source[0].candidates, seen.candidates))
        hashes = f"({same_source[0].candidates_hash[:12]}) recorded, {has} ({digest[:12]}) found"
        refuse(seen.kernel, f"{had} {hashes} for key {seen.key}")
    return match[0]


def refuse(kernel: str, text: str) -> NoReturn:
    """Emit AUTOTUNE_REPLAY_REFUSED and raise ReplayRefused."""
    reason = f"{text}; record again"
    session.current().emit_event("AUTOTUNE_REPLAY_REFUSED", kernel=kernel, reason=reason)
    raise ReplayRefused(f"AUTOTUNE_REPLAY_REFUSED kernel={kernel}: {reason}")
