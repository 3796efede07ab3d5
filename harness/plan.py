"""From a configuration and a manifest to every cell of a campaign, in order. Pure: no file, process or clock.

Order: operator by operator, round by round; within a round A,B or B,A, both orders equally often, shuffled by a seed
that is the campaign's and operator's names, so that the plan is the same on every parse.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.config import Config
from harness.providers import provider
from harness.records import (
    CALIBER_EPOCH,
    Cell,
    Instrument,
    Measure,
    Plan,
    Planned,
    Provider,
    Refusal,
    SideName,
    Workload,
)


class PlanError(Refusal):
    """Settings that no plan can honour together."""


@dataclass(frozen=True)
class Corpus:
    """What the provider contributes to a plan: itself as cells see it, and the arguments of one workload."""

    provider: Provider
    pytest_args: Callable[[Workload], tuple[str, ...]]


def cells(config: Config, workloads: Sequence[Workload], instrument: Instrument, corpus: Corpus) -> Iterator[Cell]:
    """Every cell, in plan order."""
    seq = 0
    for index, workload in enumerate(workloads):
        lane = index % len(config.devices)
        arguments = corpus.pytest_args(workload)
        own = uncaptured(instrument) if provider.key(workload.node) in config.measure.capture_deny_ops else instrument
        for round_, sides in enumerate(schedule(config.campaign, workload.op, config.measure.rounds)):
            for slot, side in enumerate(sides, 1):
                yield Cell(
                    epoch=CALIBER_EPOCH,
                    campaign=config.campaign,
                    op=workload.op,
                    round=round_,
                    side=config.sides[side],
                    seq=seq,
                    slot=1 if slot == 1 else 2,
                    lane=lane,
                    device=config.devices[lane],
                    workload=workload,
                    provider=corpus.provider,
                    instrument=own,
                    measure=config.measure,
                    autotune=tuning(config.measure, round_),
                    declared_aa=config.declared_aa,
                    allow_no_ir_diff=config.judge.allow_no_ir_diff,
                    pytest_args=arguments,
                    telemetry_s=config.telemetry_s,
                )
                seq += 1


def uncaptured(instrument: Instrument) -> Instrument:
    """The instrument of an operator that is never captured: planned direct, and so called."""
    return replace(instrument, timer="direct", l2="flushed") if instrument.timer == "cuda_graph" else instrument


def tuning(measure: Measure, round_: int) -> Literal["record", "replay", "first"]:
    """What the tuners of a round do: round 0 records, the others replay; or all take their first candidate."""
    if measure.tuning == "first":
        return "first"
    return "replay" if round_ else "record"


def refuse_sweep(measure: Measure, timer: str) -> None:
    """Refuse a sharded sweep that could not cover all shapes, or has nothing to sweep. PlanError names both keys."""
    reasons = {
        "measure.level: comprehensive": measure.level == "comprehensive"
        and "a benchmark may add any shapes to its own, which no list could shard",
        "backend: aot": timer == "compile" and "no choice is made where nothing is timed",
        "measure.tuning: first": measure.tuning == "first" and "no choice is made",
    }
    for key, reason in reasons.items():
        if measure.sweep_shards > 1 and reason:
            raise PlanError(f"measure.sweep_shards: {measure.sweep_shards} with {key}: {reason}; set sweep_shards: 1")


def shards(config: Config, cell: Cell) -> tuple[Cell, ...]:
    """The jobs that sweep the shapes of a round 0 on several lanes, each a part; () where r0_A sweeps alone."""
    count, lanes = cell.measure.sweep_shards, len(config.devices)
    if count < 2 or cell.round:
        return ()
    places = [(cell.lane + number) % lanes for number in range(count)]
    return tuple(
        replace(cell, shard=number, shards=count, lane=lane, device=config.devices[lane])
        for number, lane in enumerate(places)
    )


def schedule(campaign: str, op: str, rounds: int) -> list[tuple[SideName, ...]]:
    """The sides of each round in the order they run; round 0 is side A alone, recording."""
    ab: tuple[SideName, ...] = ("A", "B")
    ba: tuple[SideName, ...] = ("B", "A")
    orders = [ab if index % 2 == 0 else ba for index in range(rounds)]
    random.Random(f"{campaign}/{op}").shuffle(orders)
    return [("A",), *orders]


def outline(config: Config, planned: Sequence[Cell]) -> Plan:
    """The plan as one light file: 20 000 complete cells would be 40 MB to read for each of them."""
    lines = tuple(Planned(cell.key, cell.seq, cell.slot, cell.lane) for cell in planned)
    return Plan(campaign=config.campaign, devices=config.devices, cells=lines)


def compiled_ahead(cell: Cell) -> tuple[SideName, ...]:
    """The sides whose compile step must have ended before this cell may start; () where caches are not shared.

    Both sides for each of round 1's cells: another op's cell on the lane would part the pair while one side compiles.
    """
    shared = cell.measure.compile_cache == "side" and cell.instrument.timer != "compile"
    return ("A", "B") if shared and cell.round == 1 else ()


def needs(op: str, round_: int, side: SideName, shards: int = 1) -> tuple[str, ...]:
    """The cells that must have ended before this one may start; round 0 waits for its `shards`.

    Round 0 recorded the configurations; round 1 of both sides is what the gate of later rounds reads. Depth two only:
    long `ancient()` chains leave stale cells silently (facts: snakemake 0.2).
    """
    if round_ == 0:
        return tuple(f"{op}/sweep_s{number}" for number in range(shards)) if shards > 1 else ()
    if round_ == 1:
        return (f"{op}/r0_A",)
    return (f"{op}/r1_A", f"{op}/r1_B")
