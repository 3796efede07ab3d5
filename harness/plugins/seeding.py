"""Round 0 after a sharded sweep: the shards' choices are taken as recorded, and prove that they cover every key.

A key that they lack means that the sweep had a hole. Then none of it is taken: this run ends, and the cell runner
starts another without seeds (harness/sweep.py). Knows records and events; not Triton's classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from harness import codec
from harness.plugins import session
from harness.plugins.replay import NAMED_KEYS, Recorder, Seen
from harness.plugins.tuned import candidates_hash, find
from harness.records import AutotuneRecord, TunedKey

SEEDS = "seeds.json"


class SweepDiscarded(session.EndsCell):
    """A key was looked up that no shard recorded."""


def recorder(attempt: Path, record: AutotuneRecord, compile_only: bool) -> Recorder:
    """The recorder of round 0, seeded where the runner left seeds in the attempt."""
    seeds = attempt / SEEDS
    return Seeded(record, codec.read(AutotuneRecord, seeds)) if seeds.exists() else Recorder(record, compile_only)


class Seeded(Recorder):
    """Hands every tuner the choice that a shard recorded, and records it again; the first hole ends that."""

    def __init__(self, record: AutotuneRecord, seeds: AutotuneRecord) -> None:
        super().__init__(record, compile_only=False)
        self._seeds = seeds.keys
        self._used: set[int] = set()
        self._hole = ""

    def look_up(self, seen: Seen, candidates: Sequence[Any]) -> Any:
        """The candidate that a shard chose. Raises SweepDiscarded for a key without one, and for each key after it."""
        digest = candidates_hash(seen.candidates)
        wanted = (seen.kernel, seen.source_hash, seen.key, digest)
        for index, key in enumerate(self._seeds):
            if (key.kernel, key.source_hash, key.key, key.candidates_hash) == wanted and key.winner and not self._hole:
                self._used.add(index)
                return find(candidates, key.winner)
        self._discard(seen)

    def conclude(self) -> None:
        """Say how many seeds were used and write the record; after a hole there is none."""
        if self._hole:
            return
        used = str(len(self._used))
        session.current().emit_event("SWEEP_SEEDED", "", used=used, unused=str(len(self._seeds) - len(self._used)))
        super().conclude()

    def _discard(self, seen: Seen) -> NoReturn:
        if not self._hole:
            self._hole = f"{seen.kernel} {seen.key}"
            own = [key for key in self._seeds if key.kernel == seen.kernel]
            detail = {"kernel": seen.kernel, "key": seen.key, "tried": _tried(own, len(self._seeds))}
            session.current().emit_event("SWEEP_DISCARDED", reason="key_missing", **detail)
        raise SweepDiscarded(f"SWEEP_DISCARDED reason=key_missing: no shard recorded {self._hole}; sweeping serially")


def _tried(own: Sequence[TunedKey], seeds: int) -> str:
    """The keys that the shards have for the same kernel: what the missing one was looked for among."""
    if not own:
        return f"none of {seeds} seeds is of this kernel"
    more = f" and {len(own) - NAMED_KEYS} more" if len(own) > NAMED_KEYS else ""
    return ", ".join(key.key for key in own[:NAMED_KEYS]) + more
