"""Whose Triton cache this is: the stamp beside a side's cache, written by the first process that finds the cache empty.

From then on every process of that op and side, measured cells and the compile step alike, compares the stamp with
itself. Anything else in it, or entries without a stamp, make the cache a foreign one. Not a pytest plugin.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from harness import codec
from harness.compilations import CacheStamp
from harness.plugins import observed
from harness.records import Cell


def is_own(cell: Cell, is_empty: bool) -> bool:
    """True when the cache in use holds only what this side of this campaign compiled; stamps it while it `is_empty`.

    False where the runner gave the cell no shared cache, or the side's own environment named another.
    """
    path = Path(os.environ.get("CALIBER_CACHE_STAMP", ""))
    if not path.name or Path(os.environ.get("TRITON_CACHE_DIR", "")).parent != path.parent:
        return False
    mine = _of(cell, path.parents[2] / "seal.json")
    if is_empty:  # also after a kill before the first kernel: an empty cache is anybody's
        codec.write(path, mine)
    try:
        return codec.read(CacheStamp, path) == mine
    except (OSError, codec.CodecError):
        return False


def _of(cell: Cell, seal: Path) -> CacheStamp:
    """Devices may differ (the compile step sees none): the target is part of every key in the cache."""
    digest = hashlib.sha256(seal.read_bytes()).hexdigest() if seal.exists() else ""
    env: dict[str, str | None] = {**dict.fromkeys(cell.side.env), **observed.relevant_env(left_out=())}
    env |= {name: os.environ.get(name) for name in cell.side.env}
    kept = {name: value for name, value in env.items() if not name.endswith(observed.ENV_SUFFIX)}
    return CacheStamp(cell.campaign, cell.op, cell.side.name, digest, kept)
