"""seeding: round 0 after a sharded sweep, in a real target process on the fake device."""

import dataclasses

import pytest

from harness import codec, sweep
from harness.plugins import seeding, session
from harness.plugins.replay import Recorder
from harness.plugins.seeding import Seeded, SweepDiscarded
from harness.records import AutotuneRecord, Event, TunedConfig
from tests.plugins.target import ON_FAKE_DEVICE, make_cell, run
from tests.plugins.test_autotune import EMPTY, QUICK, SEEN, SLOW, Config

CELL = make_cell(**ON_FAKE_DEVICE, round=0, dtypes=("float16",), pytest_args=("--dtypes", "float16"))


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Two shards, each with another operator's keys: what a sweep by shapes leaves, in one op."""
    place = tmp_path_factory.mktemp("shards")
    return [run(place / test, test, CELL) for test in ("test_scale", "test_shift")]


@pytest.mark.slow
def test_a_seeded_round_0_tunes_nothing_and_records_every_key(tmp_path, shards):
    seeds, _ = sweep.merge(dict(enumerate(shard.record for shard in shards)))
    ran = run(tmp_path / "run", "test_scale or test_shift", CELL, seeds=seeds)
    assert ran.rc == 0, ran.log
    assert ran.event("SWEEP_SEEDED").detail == {"used": "4", "unused": "0"}
    assert ran.record.keys == seeds.keys
    assert ran.fingerprint.compile_count == len(ran.fingerprint.variants), "no loser was compiled"
    assert "SWEEP_DISCARDED" not in ran.codes


@pytest.mark.slow
def test_a_hole_is_told_ends_the_run_and_leaves_no_record(tmp_path, shards):
    ran = run(tmp_path / "run", "test_scale or test_shift", CELL, seeds=shards[0].record)
    assert ran.rc != 0
    hole = ran.event("SWEEP_DISCARDED")
    assert hole.detail["reason"] == "key_missing" and hole.detail["kernel"] == "ops.kernels.shift_kernel"
    assert hole.detail["tried"] == "none of 2 seeds is of this kernel"
    assert "SWEEP_DISCARDED reason=key_missing kernel=ops.kernels.shift_kernel" in ran.log
    assert not (ran.attempt / "autotune.json").exists()
    assert not {"SWEEP_SEEDED", "AUTOTUNE_RECORDED"} & set(ran.codes)


@pytest.fixture
def current(tmp_path, monkeypatch):
    found = session.Session(make_cell(), tmp_path, started_cold=True)
    monkeypatch.setattr(session, "current", lambda: found)
    return found


def seeded(*keys: str) -> Seeded:
    """A seeded recorder whose shards recorded `keys` of SEEN's kernel, each with the quick candidate."""
    recorder = Recorder(EMPTY, compile_only=False)
    for key in keys:
        recorder.chosen(dataclasses.replace(SEEN, key=key), Config(QUICK))
    recorder.conclude()
    recorded = codec.read(AutotuneRecord, session.current().attempt / "autotune.json")
    (session.current().attempt / "autotune.json").unlink()
    return Seeded(EMPTY, recorded)


CANDIDATES = [Config(SLOW), Config(QUICK)]


def test_a_seed_is_the_candidate_object_itself(current):
    assert seeded("[64]").look_up(SEEN, CANDIDATES) is CANDIDATES[1]


@pytest.mark.parametrize(
    "change",
    [{"key": "[65]"}, {"source_hash": "b" * 64}, {"candidates": (QUICK, TunedConfig({"BLOCK": 1}, {}))}],
)
def test_a_seed_of_another_key_kernel_or_candidate_set_covers_nothing(current, change):
    with pytest.raises(SweepDiscarded, match="no shard recorded ops.mm"):
        seeded("[64]").look_up(dataclasses.replace(SEEN, **change), CANDIDATES)


def test_after_a_hole_nothing_is_taken_from_the_seeds_any_more(current):
    mode = seeded("[1]", "[2]", "[3]", "[4]", "[64]")
    for key in ("[0]", "[64]"):
        with pytest.raises(SweepDiscarded, match=r"no shard recorded ops.mm \[0\]"):
            mode.look_up(dataclasses.replace(SEEN, key=key), CANDIDATES)
    mode.conclude()
    events = list(codec.read_lines(Event, current.attempt / "events.jsonl"))
    assert [event.code for event in events] == ["AUTOTUNE_RECORDED", "SWEEP_DISCARDED"], "told once"
    assert events[-1].detail["tried"] == "[1], [2], [3] and 2 more"
    assert not (current.attempt / "autotune.json").exists()


def test_without_seeds_round_0_is_a_plain_recorder(current):
    assert type(seeding.recorder(current.attempt, EMPTY, compile_only=False)) is Recorder
