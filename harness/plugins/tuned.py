"""A tuner's candidates and keys as values: JSON text, hashes, and the name a row gives a candidate. Pure.

A record is replayed on another build of the compiler, so nothing here may depend on that build: not Triton's own
cache keys (they hash its library), nor options that one build knows and another does not.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from harness.records import TunedConfig

#: Not part of a config's identity: the first is listed apart, a hook is code and belongs to the candidate object.
NOT_OPTIONS = ("kwargs", "pre_hook")
#: Shown in a row's config text only where they differ from Triton's defaults.
QUIET = {"num_ctas": 1}


def tuned_config(config: Any) -> TunedConfig:
    """triton.Config -> TunedConfig. An option at None, 0 or False is as good as absent: another build may lack it."""
    options = {name: value for name, value in vars(config).items() if name not in NOT_OPTIONS and value}
    return TunedConfig(kwargs=_plain(config.kwargs), options=_plain(options))


def same(one: TunedConfig, other: TunedConfig) -> bool:
    """True when both say the same, in whatever order."""
    return _text(one) == _text(other)


def find(candidates: Iterable[Any], wanted: TunedConfig) -> Any | None:
    """The candidate *object* equal to `wanted` (only it carries the pre_hook), or None."""
    return next((candidate for candidate in candidates if same(tuned_config(candidate), wanted)), None)


def candidates_hash(candidates: Sequence[TunedConfig]) -> str:
    """SHA-256 over the set of candidates; a pruning function may yield them in any order."""
    return _sha256("\n".join(sorted(map(_text, candidates))))


def key_text(key: Any) -> str:
    """The tuner's key as canonical JSON; items that JSON does not know by their repr."""
    items = key if isinstance(key, (tuple, list)) else (key,)
    return json.dumps([_item(item) for item in items], separators=(",", ":"), ensure_ascii=False)


def source_hash(kernel: Any) -> str:
    """SHA-256 of the kernel function's own source text, from `def` on."""
    return _sha256(kernel.src)


def config_text(kernel: str, config: TunedConfig) -> str:
    """`kernel(BLOCK=128,num_warps=4,num_stages=3)`: how a row names a candidate."""
    options = {name: value for name, value in config.options.items() if QUIET.get(name) != value}
    return f"{kernel}({','.join(f'{name}={value}' for name, value in {**config.kwargs, **options}.items())})"


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: _item(value) for name, value in values.items()}


def _item(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _text(config: TunedConfig) -> str:
    return json.dumps([dict(config.kwargs), dict(config.options)], sort_keys=True, ensure_ascii=False)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
