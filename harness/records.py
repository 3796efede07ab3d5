"""The nouns of caliber (design, section 2): frozen values, each born in exactly one place.

L0: standard library only, Python 3.10, loaded inside the target interpreter too. It knows no file, no
process and no vendor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cached_property
from typing import Any, Literal, Optional, Union

#: Bumped whenever a number changes its meaning; results of two epochs are never compared.
CALIBER_EPOCH = 3


class ExitCode(IntEnum):
    """Every exit code of every caliber process."""

    DONE = 0
    FAILED = 1  # a bug, or an operator that failed
    USAGE = 2  # argparse's own
    ENVIRONMENT = 3  # PREFLIGHT_FAILED check=<name>: ...
    CALIBER = 4  # !!! [caliber] axis: values -> cells
    INCOMPLETE = 5
    BUSY = 75
    TIMED_OUT = 124
    KILLED = 137


class Refusal(ValueError):
    """Something caliber refuses: one line that names the thing, the value seen and the way out."""

    code: ExitCode = ExitCode.FAILED


class Marker(str, Enum):
    """What is printed in run.log for people and written as an event for code."""

    AUTOTUNE_REPLAY_FALLBACK = "AUTOTUNE_REPLAY_FALLBACK"
    BENCHMARK_DIRECT_NO_CUDAGRAPH = "BENCHMARK_DIRECT_NO_CUDAGRAPH"
    BENCHMARK_CAPTURE_POISONED = "BENCHMARK_CAPTURE_POISONED"
    SWITCH_NO_IR_DIFF = "SWITCH_NO_IR_DIFF"
    PREFLIGHT_FAILED = "PREFLIGHT_FAILED"


class Outcome(str, Enum):
    """How an attempt at a cell ended."""

    MEASURED = "measured"
    RECORDED = "recorded"  # round 0: tuned and recorded, never a measurement
    OP_FAILED = "op_failed"
    SKIPPED = "skipped"
    PREFLIGHT = "preflight"
    BUSY = "device_busy"
    TIMED_OUT = "timed_out"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"

    @property
    def terminal(self) -> bool:
        """True when a plain re-run must not run the cell again."""
        return self in TERMINAL


TERMINAL = frozenset({Outcome.MEASURED, Outcome.RECORDED, Outcome.OP_FAILED, Outcome.SKIPPED})

SideName = Literal["A", "B"]


@dataclass(frozen=True)
class Side:
    """One side of the switch: an interpreter, import paths, and environment values (None = unset)."""

    name: SideName
    python: str
    pythonpath: tuple[str, ...]
    env: Mapping[str, Optional[str]]


@dataclass(frozen=True)
class Measure:
    """Everything under `measure:` in the config. Part of the caliber and of the seal."""

    rounds: int
    level: Literal["core", "comprehensive"]
    shapes: Literal["file", "upstream"]
    graph: Literal["auto", "off", "require"]
    direct_repeat: int
    warmup_ms: int
    rep_ms: int
    tuner_cache: Literal["isolated", "shared"]
    cell_timeout_s: int
    l2: Literal["default", "flushed"] = "default"  # default: warm under graph replay, flushed by do_bench
    tuning: Literal["record", "first"] = "record"  # first: every tuner takes its first candidate, on both sides
    sweep_shards: int = 1  # round 0 in this many shards of the shapes, spread over the lanes
    compile_cache: Literal["side", "cell"] = "side"  # side: one cache per (op, side), filled ahead off the device
    capture_deny_ops: tuple[str, ...] = ()  # pytest function names minus `test_`: planned as direct
    no_progress_s: int = 0  # nothing new from the target for so long is a hang; 0 = no such limit


@dataclass(frozen=True)
class Judge:
    """Everything under `judge:`. Not part of the caliber: may change on a finished campaign."""

    margin_pct: float
    q: float
    allow_no_ir_diff: bool
    allow_caliber_mismatch: bool
    noise_campaign: str = ""  # directory of a judged A/A campaign whose noise floor feeds the margin


@dataclass(frozen=True)
class Workload:
    """One operator benchmark of a manifest. A narrowing (dtypes) always has a written reason."""

    op: str
    node: str
    dtypes: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Provider:
    """Where operators come from: its name, and the root directory that nodes are relative to."""

    name: str
    root: str
    digest: str


CaptureClass = Literal["recoverable", "fatal", "poisoned"]


@dataclass(frozen=True)
class CaptureTexts:
    """A vendor's own wordings of a failed graph capture; one vendor's are never guessed for another.

    recoverable: this row falls back to direct timing. fatal: the kernel itself failed, so a fallback latency would
    report a broken kernel as a measurement. poisoned: the attempt left the process unusable.
    """

    recoverable: tuple[str, ...] = ()
    fatal: tuple[str, ...] = ()
    poisoned: tuple[str, ...] = ()

    def classify(self, message: str) -> CaptureClass:
        """The class of an error message; an unknown wording is fatal, the only answer that invents no latency."""
        if any(text in message for text in self.fatal):
            return "fatal"
        if any(text in message for text in self.poisoned):
            return "poisoned"
        return "recoverable" if any(text in message for text in self.recoverable) else "fatal"


@dataclass(frozen=True)
class Instrument:
    """The slice of backend facts that the plan copies into a cell; the plugins obey it.

    `timer` is the *planned* timer; the row says which one was used. `runtime` is the torch device module
    ("cuda", "musa", "npu"; "meta" for aot). `capture_texts` are the vendor's own wordings.
    """

    backend: str
    target: str  # "cuda:90" for aot, "" elsewhere
    visible_env: tuple[str, ...]
    runtime: str
    timer: Literal["compile", "direct", "cuda_graph"]
    l2: Literal["none", "warm", "flushed"]
    plugins: tuple[str, ...]
    sampler: str  # telemetry sampler name, "" = none
    capture_texts: CaptureTexts = CaptureTexts()


@dataclass(frozen=True)
class Cell:
    """(round, op, side): complete and replayable. Paths are relative to the campaign directory."""

    epoch: int
    campaign: str
    op: str
    round: int
    side: Side
    seq: int  # place in the plan
    slot: Literal[1, 2]  # ran first or second in its round
    lane: int
    device: str  # index, UUID or MIG UUID, as configured
    workload: Workload
    provider: Provider
    instrument: Instrument
    measure: Measure
    autotune: Literal["record", "replay", "first"]
    declared_aa: bool
    allow_no_ir_diff: bool
    pytest_args: tuple[str, ...]
    telemetry_s: float = 1.0  # seconds between samples, 0 = off
    shard: int = 0  # this process sweeps shapes shard, shard + shards, ... of the op; a part of round 0
    shards: int = 1

    @property
    def key(self) -> str:
        """`op/r<k>_<side>`, or `op/sweep_s<i>` of a shard: the cell's directory below the campaign."""
        return f"{self.op}/sweep_s{self.shard}" if self.shards > 1 else f"{self.op}/r{self.round}_{self.side.name}"


@dataclass(frozen=True)
class Row:
    """One (op, dtype, shape, occurrence[, config]) value of one cell.

    `value` is in `unit`, full precision; None when the row is invalid, with its reason. `config` names the tuning
    candidate where every candidate is a row (backend aot), else "". `metrics` are exact counts;
    `variants` are fingerprint ids of the kernels this row launched.
    """

    op: str
    dtype: str
    shape: str
    occurrence: int
    config: str
    value: Optional[float]
    unit: Literal["ms"]
    timer: Literal["compile", "direct", "cuda_graph"]
    l2: Literal["none", "warm", "flushed"]
    repeat: int
    reason: str
    metrics: Mapping[str, int]
    variants: tuple[str, ...]

    @cached_property
    def key(self) -> RowKey:
        """Made once: judging asks for it some twenty times a row."""
        return RowKey(self.op, self.dtype, self.shape, self.occurrence, self.config)


@dataclass(frozen=True, order=True)
class RowKey:
    """What two rows must share to be paired."""

    op: str
    dtype: str
    shape: str
    occurrence: int
    config: str

    def __str__(self) -> str:
        number = f" #{self.occurrence}" if self.occurrence else ""
        config = f" {self.config}" if self.config else ""
        return f"{self.op} {self.dtype} {self.shape}{number}{config}"


@dataclass(frozen=True)
class Event:
    """Something a row or cell must be judged by. `row` is str(RowKey), "" when it concerns the whole cell."""

    code: str
    row: str
    detail: Mapping[str, str]


@dataclass(frozen=True)
class Variant:
    """One compiled specialization: kernel, signature, constants and options are its identity.

    `stages` maps stage name (in compile order) to the SHA-256 of its text, locations stripped; `code` is the
    SHA-256 of the code sections of the binary ("" where the format is unknown). `metrics` are exact counts.
    """

    id: str
    kernel: str
    signature: str
    options: str
    stages: Mapping[str, str]
    code: str
    metrics: Mapping[str, int]
    compiled: bool  # False: came from a cache
    launched: bool


@dataclass(frozen=True)
class Fingerprint:
    """What one cell compiled and launched."""

    variants: tuple[Variant, ...]
    compile_count: int  # in this process
    cache_hits: int
    own_cache: bool = False  # its cache held nothing but what this side of this campaign compiled: a hit is no doubt


GateVerdict = Literal["NO_CODE_CHANGE", "IR_DIFF_SAME_CODE", "CODE_CHANGED", "IR_UNKNOWN"]


@dataclass(frozen=True)
class Gate:
    """Did the switch change any generated code of this op? `stage` is the first stage that differs, or ""."""

    op: str
    verdict: GateVerdict
    stage: str
    reason: str
    variants_compared: int
    variants_changed: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


@dataclass(frozen=True)
class TunedConfig:
    """A tuner's choice: keyword values and launch options of one candidate."""

    kwargs: Mapping[str, Any]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class TunedKey:
    """What one tuner did for one key. `winner` is None where nothing can be timed (aot): replay the candidates."""

    tuner: Literal["triton", "libtuner"]
    kernel: str
    source_hash: str
    key: str
    candidates_hash: str
    candidates: tuple[TunedConfig, ...]
    winner: Optional[TunedConfig]


@dataclass(frozen=True)
class AutotuneRecord:
    """`autotune.json`: what round 0 recorded and every measured cell replays."""

    op: str
    build: str  # triton version and libtriton digest it was recorded under
    timer: str
    recorded_under: Literal["exclusive"]
    keys: tuple[TunedKey, ...]


@dataclass(frozen=True)
class Status:
    """How one attempt at a cell ended; `status.json` when the outcome is terminal."""

    campaign: str
    op: str
    round: int
    side: SideName
    outcome: Outcome
    rc: int
    reason: str
    elapsed_s: float
    success: int
    failed: int
    rows_expected: Optional[int]
    markers: Mapping[str, int]
    seq: int  # nth cell started on its device, by this campaign
    attempt: int
    started_at: str  # ISO 8601, UTC
    ended_at: str
    device: str  # UUID, or what stands for one
    phases_s: Mapping[str, float]
    evidence_sha256: Mapping[str, str]


class Role(str, Enum):
    """What caliber does with an identity field."""

    COMPARED = "compared"
    AXIS = "axis"  # expected to differ: the switch, the compiler build
    EVIDENCE = "evidence"  # recorded, never compared


def _compared(text: str) -> Any:
    return field(metadata={"role": Role.COMPARED, "text": text})


def _axis(text: str) -> Any:
    return field(metadata={"role": Role.AXIS, "text": text})


def _evidence() -> Any:
    return field(metadata={"role": Role.EVIDENCE})


def require_roles(cls: type) -> type:
    """Class decorator: a field without a role does not compile (design, decision 7)."""
    for item in dataclasses.fields(cls):
        if "role" not in item.metadata:
            raise TypeError(
                f"{cls.__name__}.{item.name} declares no role; use _compared(text), _axis(text) or _evidence()"
            )
    return cls


@require_roles
@dataclass(frozen=True)
class Identity:
    """What the target process observed about itself; effective values, never requested ones."""

    epoch: int = _compared("meaning of caliber's numbers (`CALIBER_EPOCH`)")
    backend: str = _compared("cuda, musa, rocm, ascend, aot")
    target: str = _compared("what `aot` compiles for")
    device_model: str = _compared("the device's name")
    device_uuid: str = _compared("the very device")
    driver: str = _compared("driver version")
    runtime: str = _compared("CUDA, ROCm, MUSA runtime version")
    python: str = _compared("version of the target interpreter")
    torch: str = _compared("version")
    provider: str = _compared("where operators come from")
    provider_digest: str = _compared("commit or hash of the operators")
    harness_digest: str = _compared("hash of the frozen target-side code")
    plugins: tuple[str, ...] = _compared("plugins that were really loaded, in order")
    timer: str = _compared("the planned timer; the one used is in each row")
    l2: str = _compared("the planned L2 state: warm or flushed under graph replay, flushed by do_bench, none")
    level: str = _compared("core or comprehensive")
    shapes: str = _compared("shape file or upstream")
    dtypes: tuple[str, ...] = _compared("narrowing by dtype")
    direct_repeat: int = _compared("timer calls per directly timed row")
    warmup_ms: int = _compared("warm-up as the benchmark parsed it")
    rep_ms: int = _compared("repetition as the benchmark parsed it")
    tuner_cache: str = _compared("isolated or shared")
    autotune_mode: str = _compared("record, replay or first")
    autotune_digest: str = _compared("hash of the record that was replayed")
    compile_cache: str = _compared("the Triton cache: side (the operator and side's own), cell (cold), warm (foreign)")
    env: Mapping[str, str] = _compared("relevant variables other than the switch, one by one")
    switch: Mapping[str, Optional[str]] = _axis("the variables either side names, as seen; null = unset")
    executable: str = _axis("target interpreter")
    pythonpath: tuple[str, ...] = _axis("import paths of the side")
    triton: str = _axis("version")
    triton_digest: str = _axis("hash of Triton's Python files and libtriton")
    compiler_commit: str = _axis("HEAD of the git checkout Triton was imported from; empty for an installed package")
    host: str = _evidence()
    pid: int = _evidence()
    started_at: str = _evidence()
    cuda_visible: str = _evidence()


def identity_fields(role: Role) -> tuple[str, ...]:
    """The names of the identity fields with `role`, in declaration order."""
    return tuple(item.name for item in dataclasses.fields(Identity) if item.metadata["role"] is role)


@dataclass(frozen=True)
class Seal:
    """`seal.json`: what a campaign was started with. A later run with anything else is refused."""

    epoch: int
    campaign: str
    manifest_digest: str
    config_digest: str
    harness_digest: str
    provider_digest: str
    created_at: str


@dataclass(frozen=True)
class Planned:
    """One line of the plan; the complete cell is `<key>/cell.json`."""

    key: str
    seq: int
    slot: Literal[1, 2]
    lane: int


@dataclass(frozen=True)
class Plan:
    """`plan.json`: every cell of a campaign, in the order it should run."""

    campaign: str
    devices: tuple[str, ...]  # lane i runs on devices[i]
    cells: tuple[Planned, ...]


@dataclass(frozen=True)
class CellEvidence:
    """A planned cell and all that was found of it. `status` is None until it ended terminally."""

    cell: Cell
    status: Optional[Status]
    identity: Optional[Identity]
    fingerprint: Optional[Fingerprint]
    rows: tuple[Row, ...]
    events: tuple[Event, ...]


#: JSON values that a dataclass field may hold untyped (tuner arguments).
Json = Union[None, bool, int, float, str, list[Any], dict[str, Any]]
