"""Incidents of sharded sweeps (facts/incidents.md): a published record with holes, dead shards, unshardable shapes."""

import dataclasses

import pytest

from harness import codec, config, plan, store, sweep
from harness.attempt import Place, promote
from harness.plugins.tuned import candidates_hash
from harness.records import AutotuneRecord, Outcome
from tests import evidence
from tests.plugins.target import ON_FAKE_DEVICE, make_cell, run

CELL = make_cell(**ON_FAKE_DEVICE, round=0, sweep_shards=5, pytest_args=("--dtypes", "float16"))


def place(root, shard=0, shards=1):
    cell = dataclasses.replace(CELL, shard=shard, shards=shards)
    attempt = root / cell.key / "attempts" / "1"
    attempt.mkdir(parents=True)
    return Place(cell, root, attempt.parent.parent, attempt)


def shard_ended(root, number, record=None):
    own = place(root, number, 5)
    if record:
        codec.write(own.attempt / "autotune.json", record)
    status = evidence.status(own.cell, Outcome.RECORDED if record else Outcome.TIMED_OUT)
    assert promote(own, dataclasses.replace(status, attempt=1))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> AutotuneRecord:
    return run(tmp_path_factory.mktemp("recorded") / "run", "test_scale", CELL).record


@pytest.mark.slow
def test_three_dead_shards_of_five_publish_nothing(tmp_path, recorded):
    """3 of 5 shards had died; what the other two recorded was published with a WARNING."""
    for number in range(5):
        shard_ended(tmp_path, number, recorded if number in (0, 3) else None)
    own = place(tmp_path)
    sweep.seed(own)
    assert not (own.attempt / "seeds.json").exists()
    events = store.events(own.attempt)
    assert [(event.code, event.detail["shard"]) for event in events] == [("SWEEP_DISCARDED", n) for n in "124"]
    assert not (tmp_path / "double/autotune.json").exists()


@pytest.mark.slow
def test_a_sweep_with_holes_is_swept_again_and_not_published(tmp_path, recorded):
    """5 of 29 mm shapes were swept, and 90 keys tuned themselves in runs that called themselves replaying."""
    part = dataclasses.replace(recorded, keys=recorded.keys[:1])
    ran = run(tmp_path / "seeded", "test_scale", CELL, seeds=part)
    hole = ran.event("SWEEP_DISCARDED").detail
    assert (hole["reason"], hole["key"]) == ("key_missing", recorded.keys[1].key)
    assert hole["tried"] == recorded.keys[0].key, "what the missing key was looked for among"
    assert not (ran.attempt / "autotune.json").exists()
    (ran.attempt / "scratch/triton").mkdir(parents=True)
    assert sweep.discarded(Place(CELL, tmp_path, ran.attempt, ran.attempt)), "the runner starts another, without seeds"
    assert not list(ran.attempt.glob("rows.jsonl")), "nothing of the seeded run counts"


@pytest.mark.slow
def test_candidates_that_changed_since_a_shard_recorded_are_a_hole_too(tmp_path, recorded):
    fewer = tuple(
        dataclasses.replace(key, candidates=key.candidates[:1], candidates_hash=candidates_hash(key.candidates[:1]))
        for key in recorded.keys
    )
    ran = run(tmp_path / "run", "test_scale", CELL, seeds=dataclasses.replace(recorded, keys=fewer))
    assert ran.event("SWEEP_DISCARDED").detail["reason"] == "key_missing"


def test_comprehensive_adds_shapes_of_its_own_and_is_not_sharded(tmp_path):
    data = {"campaign": "c", "manifest": "m", "backend": "cuda", "sides": {"A": {}, "B": {}}}
    settings = config.parse({**data, "measure": {"level": "comprehensive", "sweep_shards": 5}}, tmp_path)
    with pytest.raises(plan.PlanError, match=r"measure.sweep_shards: 5 with measure.level: comprehensive: .*set sweep"):
        plan.refuse_sweep(settings.measure, "cuda_graph")
