"""The nouns of a side's compile cache: whose it is, what is compiled into it ahead of time, what came of that. L0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from harness.records import SideName


@dataclass(frozen=True)
class CacheStamp:
    """Beside a side's Triton cache: whose it is since it was empty, and in what environment it is filled."""

    campaign: str
    op: str
    side: SideName
    seal: str  # SHA-256 of seal.json, "" without one
    env: Mapping[str, Optional[str]]  # the variables that change what is compiled, the switch included


@dataclass(frozen=True)
class Specialization:
    """What the compiler was asked for one variant that measured cells need: enough to ask it again without a launch."""

    module: str
    kernel: str  # the JIT function's qualified name in `module`
    target: Mapping[str, Any]  # fields of Triton's GPUTarget
    data: str  # what JITFunction.preload reads; of the options only those that the call itself asked for
    file: str = ""  # name below the attempt's `generated/`: a copy of a module that no import finds
    overlaid: str = ""  # the module whose globals the generator laid over that module's own


@dataclass(frozen=True)
class Ahead:
    """`ahead_<side>.json`: what was compiled for a side before its measured cells. It never stops one.

    `reason` says why nothing, or no more, was compiled; what is missing the measured cells compile themselves.
    """

    op: str
    side: SideName
    asked: int  # variants that round 0 compiled, less the losers of tuners
    compiled: int
    cached: int  # were in the side's cache already
    missing: Mapping[str, str]  # kernel -> why
    reason: str
    elapsed_s: float
