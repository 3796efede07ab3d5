"""sweep: the shards' records become seeds, or the sweep is discarded whole."""

from __future__ import annotations

import dataclasses

import pytest

from harness import codec, config, plan, store, sweep
from harness.attempt import Place, final, promote
from harness.records import AutotuneRecord, Cell, Event, Outcome, TunedConfig, TunedKey
from tests import evidence

SMALL, LARGE = (TunedConfig({"BLOCK": block}, {"num_warps": 4}) for block in (64, 128))


def key(text: str, winner: TunedConfig = SMALL, kernel: str = "ops.mm", source: str = "a") -> TunedKey:
    return TunedKey("triton", kernel, source, text, "h", (SMALL, LARGE), winner)


def record(*keys: TunedKey) -> AutotuneRecord:
    return AutotuneRecord("softmax", "3.7.1 abc", "cuda_graph", "exclusive", keys)


def round_0(shards: int = 2) -> Cell:
    cell = evidence.cell(round_=0)
    return dataclasses.replace(cell, measure=dataclasses.replace(cell.measure, sweep_shards=shards))


def place(tmp_path, cell: Cell) -> Place:
    attempt = tmp_path / cell.key / "attempts" / "1"
    attempt.mkdir(parents=True)
    return Place(cell, tmp_path, attempt.parent.parent, attempt)


def ended(tmp_path, number: int, keys: tuple[TunedKey, ...] = (), outcome: Outcome = Outcome.RECORDED) -> None:
    """Shard `number` of 2 has ended."""
    own = place(tmp_path, dataclasses.replace(round_0(), shard=number, shards=2))
    codec.write(own.attempt / "autotune.json", record(*keys))
    status = dataclasses.replace(evidence.status(own.cell, outcome, reason="boom"), attempt=1)
    assert promote(own, status)


def told(of: Place) -> list[Event]:
    return list(store.events(of.attempt))


def test_the_keys_of_all_shards_become_one_record_in_shard_order():
    merged, conflicts = sweep.merge({0: record(key("[1]")), 1: record(key("[2]"), key("[1]"))})
    assert [found.key for found in merged.keys] == ["[1]", "[2]"]
    assert conflicts == ()


def test_two_shards_that_chose_differently_keep_the_firsts_choice_and_are_told():
    merged, conflicts = sweep.merge({0: record(), 1: record(key("[1]", SMALL)), 2: record(key("[1]", LARGE))})
    assert [found.winner for found in merged.keys] == [SMALL]
    assert conflicts == (sweep.Conflict("ops.mm", "[1]", kept=1, dropped=2),)


def test_a_key_of_another_kernel_text_is_no_conflict():
    merged, conflicts = sweep.merge(
        {0: record(key("[1]", SMALL, source="a")), 1: record(key("[1]", LARGE, source="b"))}
    )
    assert (len(merged.keys), conflicts) == (2, ())


def test_when_every_shard_recorded_round_0_is_seeded(tmp_path):
    ended(tmp_path, 0, (key("[1]"), key("[3]")))
    ended(tmp_path, 1, (key("[2]"), key("[3]", LARGE)))
    own = place(tmp_path, round_0())
    sweep.seed(own)
    seeds = codec.read(AutotuneRecord, own.attempt / "seeds.json")
    assert [found.key for found in seeds.keys] == ["[1]", "[3]", "[2]"]
    (conflict,) = told(own)
    detail = {"kernel": "ops.mm", "key": "[3]", "kept_shard": "0", "dropped_shard": "1"}
    assert (conflict.code, conflict.detail) == ("SWEEP_CONFLICT", detail)
    assert not (tmp_path / "softmax" / "autotune.json").exists(), "a shard's record is never the op's"


@pytest.mark.parametrize("outcome", [Outcome.OP_FAILED, Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.SKIPPED])
def test_one_failed_shard_discards_the_whole_sweep(tmp_path, outcome, capsys):
    ended(tmp_path, 0, (key("[1]"),))
    ended(tmp_path, 1, outcome=outcome)
    own = place(tmp_path, round_0())
    sweep.seed(own)
    assert not (own.attempt / "seeds.json").exists()
    (event,) = told(own)
    assert event.detail == {"reason": "shard_failed", "shard": "1", "why": f"{outcome.value}: boom"}
    text = f"SWEEP_DISCARDED reason=shard_failed shard=1 why={outcome.value}: boom\n"
    assert (own.attempt / "run.log").read_text() == text
    assert text in capsys.readouterr().out


def test_a_shard_that_never_ran_discards_the_sweep_too(tmp_path):
    ended(tmp_path, 1, (key("[1]"),))
    own = place(tmp_path, round_0())
    sweep.seed(own)
    assert [event.detail["why"] for event in told(own)] == ["it has not run"]


def took(tmp_path, number: int, *shapes: int) -> None:
    """Shard `number` of 2 ended without a row, having taken so many shapes per benchmark."""
    ended(tmp_path, number, outcome=Outcome.OP_FAILED)
    for count in shapes:
        event = Event("SHARD_SHAPES", "", {"total": "1", "taken": str(count)})
        codec.append_line(tmp_path / f"softmax/sweep_s{number}/attempts/1/events.jsonl", event)


def test_a_shard_for_which_no_shape_was_left_is_not_missed(tmp_path):
    ended(tmp_path, 0, (key("[1]"),))
    took(tmp_path, 1, 0, 0)
    own = place(tmp_path, round_0())
    sweep.seed(own)
    assert len(codec.read(AutotuneRecord, own.attempt / "seeds.json").keys) == 1
    assert told(own) == []


@pytest.mark.parametrize("shapes", [(0, 1), (1,), ()])
def test_a_shard_that_failed_on_a_shape_is_missed(tmp_path, shapes):
    ended(tmp_path, 0, (key("[1]"),))
    took(tmp_path, 1, *shapes)
    own = place(tmp_path, round_0())
    sweep.seed(own)
    assert not (own.attempt / "seeds.json").exists()


def test_shards_that_all_had_no_shapes_are_no_sweep(tmp_path):
    took(tmp_path, 0, 0)
    took(tmp_path, 1, 0)
    own = place(tmp_path, round_0())
    sweep.seed(own)
    assert [event.detail["shard"] for event in told(own)] == ["0", "1"]


@pytest.mark.parametrize(
    "cell",
    [
        round_0(shards=1),
        dataclasses.replace(round_0(), round=1),
        dataclasses.replace(round_0(), shard=1, shards=2),
        dataclasses.replace(round_0(), autotune="first"),
    ],
)
def test_only_a_sharded_round_0_is_seeded(tmp_path, cell):
    own = place(tmp_path, cell)
    sweep.seed(own)
    assert list(own.attempt.iterdir()) == []


def test_a_seeded_run_with_a_hole_is_set_aside_with_its_caches(tmp_path):
    own = place(tmp_path, round_0())
    for name in ("seeds.json", "rows.jsonl", "run.log", "telemetry.csv"):
        (own.attempt / name).write_text(name)
    (own.scratch / "triton").mkdir(parents=True)
    (own.scratch / "tuner.db").write_text("seeds")
    conflict, hole = Event("SWEEP_CONFLICT", "", {}), Event("SWEEP_DISCARDED", "", {"reason": "key_missing"})
    for event in (conflict, Event("ROW_FAILED", "r", {}), hole):
        codec.append_line(own.attempt / "events.jsonl", event)
    assert sweep.discarded(own)
    assert sorted(path.name for path in own.attempt.iterdir()) == [
        "discarded", "events.jsonl", "run.log", "scratch", "telemetry.csv",
    ]  # fmt: skip
    assert told(own) == [conflict, hole]
    assert (own.attempt / "discarded/rows.jsonl").read_text() == "rows.jsonl"
    assert [path.name for path in own.scratch.iterdir()] == ["triton"]
    assert not sweep.discarded(own), "there are no seeds any more"


def test_a_discard_that_the_runner_itself_told_is_no_reason_for_a_second_run(tmp_path):
    ended(tmp_path, 0)
    own = place(tmp_path, round_0())
    sweep.seed(own)
    assert not sweep.discarded(own)


def test_a_shard_has_one_try_and_an_interrupted_one_another():
    shard = dataclasses.replace(round_0(), shard=1, shards=2)
    assert {outcome for outcome in Outcome if not final(shard, outcome)} == {Outcome.INTERRUPTED}
    assert not final(round_0(), Outcome.TIMED_OUT)


def settings(tmp_path, **measure) -> config.Config:
    data = {"campaign": "c", "manifest": "m", "backend": "cuda", "devices": [0, 1, 2], "sides": {"A": {}, "B": {}}}
    return config.parse({**data, "measure": measure}, tmp_path)


def test_shards_run_on_the_ops_lane_and_those_after_it_under_keys_of_their_own(tmp_path):
    sharded = settings(tmp_path, sweep_shards=2)
    cell = dataclasses.replace(evidence.cell(round_=0), lane=2, measure=sharded.measure)
    found = plan.shards(sharded, cell)
    assert [(part.key, part.lane, part.device, part.shard, part.shards) for part in found] == [
        ("softmax/sweep_s0", 2, "2", 0, 2), ("softmax/sweep_s1", 0, "0", 1, 2),
    ]  # fmt: skip
    assert plan.shards(sharded, dataclasses.replace(cell, round=1)) == ()
    assert plan.shards(settings(tmp_path), evidence.cell(round_=0)) == ()


def test_round_0_waits_for_its_shards():
    assert plan.needs("mm", 0, "A", 2) == ("mm/sweep_s0", "mm/sweep_s1")
    assert plan.needs("mm", 1, "A", 2) == ("mm/r0_A",)


@pytest.mark.parametrize(
    ("measure", "timer", "message"),
    [
        ({"level": "comprehensive"}, "cuda_graph", "measure.sweep_shards: 2 with measure.level: comprehensive: "),
        ({}, "compile", "measure.sweep_shards: 2 with backend: aot: "),
        ({"tuning": "first"}, "direct", "measure.sweep_shards: 2 with measure.tuning: first: "),
    ],
)
def test_a_sweep_that_cannot_cover_or_has_nothing_to_sweep_is_refused(tmp_path, measure, timer, message):
    with pytest.raises(plan.PlanError, match=message):
        plan.refuse_sweep(settings(tmp_path, sweep_shards=2, **measure).measure, timer)
    plan.refuse_sweep(settings(tmp_path, **measure).measure, timer)
