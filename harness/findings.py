"""What judging finds: the verdict words and the frozen values that `verdict.json` and the report are made of.

Values only; must not know how a verdict is reached. All numbers are finite, log ratios unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from harness.exact import MetricChange, MetricTotal
from harness.pairing import Ledger
from harness.records import Gate, RowKey
from harness.statistics import Estimate, percent

Quantity = Literal["device latency", "compile latency"]


class Verdict(str, Enum):
    """The answer per shape and per op. The first five are about numbers, the others say why there is none."""

    FASTER = "FASTER"
    SLOWER = "SLOWER"
    SAME = "SAME"
    UNRESOLVED = "UNRESOLVED"
    SIGN_UNSTABLE = "SIGN_UNSTABLE"
    NO_CODE_CHANGE = "NO_CODE_CHANGE"
    IR_DIFF_SAME_CODE = "IR_DIFF_SAME_CODE"
    IR_UNKNOWN = "IR_UNKNOWN"
    NOT_COMPARABLE = "NOT_COMPARABLE"
    MIXED_TIMER = "MIXED_TIMER"
    INCOMPLETE = "INCOMPLETE"
    POISONED = "POISONED"
    FAILED = "FAILED"
    CLOCK_CONFOUNDED = "CLOCK_CONFOUNDED"

    @property
    def claims(self) -> bool:
        """True for a direction: what a false positive would be."""
        return self in (Verdict.FASTER, Verdict.SLOWER)

    @property
    def numeric(self) -> bool:
        """True when the latencies themselves decided."""
        return self in NUMERIC


NUMERIC = frozenset({Verdict.FASTER, Verdict.SLOWER, Verdict.SAME, Verdict.UNRESOLVED, Verdict.SIGN_UNSTABLE})


@dataclass(frozen=True)
class Reason:
    """Why a verdict is what it is, or what qualifies it; the message carries the numbers."""

    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True)
class RoundDelta:
    """One round of one op: the mean over its shapes of log b - log a."""

    round: int
    order: int  # +1: A ran first
    delta: float


@dataclass(frozen=True)
class SideNoise:
    """sd of either side's level over the rounds, after slot and trend; None below 4 rounds.

    `ratio` = round spread^2 / (a^2 + b^2). Far below 1: drift is shared and pairing works. Far above: interaction.
    """

    a: float | None
    b: float | None
    ratio: float | None


@dataclass(frozen=True)
class ShapeVerdict:
    """The answer for one row key. `a_ms`, `b_ms` are geometric means over the rounds."""

    key: RowKey
    verdict: Verdict
    reasons: tuple[Reason, ...]
    estimate: Estimate | None
    p_adjusted: float | None  # Benjamini-Hochberg within the op
    margin: float | None
    a_ms: float | None
    b_ms: float | None
    metrics: tuple[MetricChange, ...]  # exact values that differ
    margin_source: str = ""  # what the margin in force comes from


@dataclass(frozen=True)
class OpVerdict:
    """The answer for one op, from its own cells alone; the correction across ops is the campaign's."""

    op: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    quantity: Quantity
    declared_aa: bool
    gate: Gate | None
    estimate: Estimate | None
    margin: float | None
    rounds: tuple[RoundDelta, ...]
    noise: SideNoise | None
    aa_delta: float | None  # identical code: median |delta| over the shapes of round 1
    shapes: tuple[ShapeVerdict, ...]
    metrics: tuple[MetricTotal, ...]
    ledger: Ledger | None
    margin_source: str = ""
    family_p: float | None = None  # of "no shape differs", where the shapes borrow certainty and one would claim
    control: tuple[float, ...] = ()  # identical code: the delta of each shape in round 1


@dataclass(frozen=True)
class OpLine:
    """One op in its campaign: the verdict after the correction across ops."""

    op: str
    verdict: Verdict
    reasons: tuple[Reason, ...]  # added by the campaign
    p_adjusted: float | None


@dataclass(frozen=True)
class SignBalance:
    """Ops by sign of their delta, and by claim. One-sided claims are the fingerprint of an artifact."""

    negative: int
    positive: int
    faster: int
    slower: int


@dataclass(frozen=True)
class Geomean:
    """Geometric mean latency ratio over ops, each op the mean over its own paired shapes."""

    delta: float
    ops: int
    shapes: int
    smallest: float
    largest: float


@dataclass(frozen=True)
class NoiseFloor:
    """How far identical code moved in round 1 of this very campaign: |delta| over `shapes` shapes of `ops` ops."""

    p95: float
    ops: int
    shapes: int
    p50: float
    largest: float

    def __str__(self) -> str:
        half, most, largest = (f"{percent(size):.2f} %" for size in (self.p50, self.p95, self.largest))
        where = f"{self.shapes} shape{'s' * (self.shapes != 1)} of {self.ops} op{'s' * (self.ops != 1)}"
        return f"one round of identical code moved by {half} (median), {most} (p95), {largest} (max) over {where}"


@dataclass(frozen=True)
class CampaignVerdict:
    """All ops together."""

    ops: tuple[OpLine, ...]
    balance: SignBalance
    geomean: Geomean | None
    noise_floor: NoiseFloor | None
    reasons: tuple[Reason, ...]


def codes(reasons: Sequence[Reason]) -> tuple[str, ...]:
    """The codes of `reasons`, in order."""
    return tuple(reason.code for reason in reasons)
