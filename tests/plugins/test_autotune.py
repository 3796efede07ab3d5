import dataclasses

import pytest

from harness.plugins import replay, session
from harness.plugins.replay import First, Recorder, Replayer, ReplayRefused, Seen
from harness.records import AutotuneRecord, Event, TunedConfig
from tests.plugins.target import ON_FAKE_DEVICE, edited, make_cell, replaying, run

DEVICE_CELL = replaying(make_cell(**ON_FAKE_DEVICE))
QUICK = TunedConfig({"BLOCK": 128}, {"num_warps": 4, "num_ctas": 1, "num_stages": 3})
SLOW = TunedConfig({"BLOCK": 64}, {"num_warps": 2, "num_ctas": 1, "num_stages": 3})


@pytest.mark.slow
def test_the_record_holds_the_winner_and_the_candidates_of_every_key(device_record):
    record = device_record.record
    assert (record.op, record.timer, record.recorded_under) == ("double", "direct", "exclusive")
    keys = {(key.tuner, key.kernel.rpartition(".")[2], key.key) for key in record.keys}
    assert keys == {
        ("triton", "scale_kernel", '[4096,"torch.float16","torch.float16"]'),
        ("triton", "scale_kernel", '[1000,"torch.float16","torch.float16"]'),
        ("triton", "scale_kernel", '[4096,"torch.float32","torch.float32"]'),
        ("triton", "scale_kernel", '[1000,"torch.float32","torch.float32"]'),
        ("libtuner", "shift_kernel", "[128]"),
        ("libtuner", "shift_kernel", "[31]"),
    }
    assert all(key.winner == QUICK and key.candidates == (SLOW, QUICK) for key in record.keys)


@pytest.mark.slow
def test_a_replayed_key_is_never_tuned(device_record, device_replay):
    assert device_replay.rc == 0, device_replay.log
    assert device_replay.event("AUTOTUNE_REPLAY").detail == {"used": "6", "missing": "0", "unused": "0"}
    assert "REPLAY_PARTIAL" not in device_replay.codes
    assert [row.variants for row in device_replay.rows] == [row.variants for row in device_record.rows]
    # the loser of each key was compiled while recording, and never here
    assert device_record.fingerprint.compile_count > device_replay.fingerprint.compile_count
    assert device_replay.fingerprint.compile_count == len(device_replay.fingerprint.variants)


@pytest.mark.slow
def test_a_replayed_winner_is_launched_even_where_tuning_would_choose_another(tmp_path, device_record):
    record = edited(device_record, tmp_path / "record.json", lambda key: dataclasses.replace(key, winner=SLOW))
    ran = run(tmp_path / "run", "scale or shift", DEVICE_CELL, record=record)
    assert ran.rc == 0, ran.log
    assert {row.value for row in ran.rows} == {1.0}
    assert {variant.options for variant in ran.fingerprint.variants} == {"num_warps=2 num_stages=3"}


@pytest.mark.slow
def test_a_key_without_a_record_is_marked_and_tunes_itself(tmp_path, device_record):
    record = edited(device_record, tmp_path / "record.json", lambda key: key if "1000" in key.key else None)
    ran = run(tmp_path / "run", "scale", DEVICE_CELL, record=record)
    assert ran.rc == 0, ran.log
    missing = [event for event in ran.events if event.code == "AUTOTUNE_REPLAY_FALLBACK"]
    assert [event.row for event in missing] == ["scale float16 [[64,64]]", "scale float32 [[64,64]]"]
    assert missing[0].detail["reason"] == "key_missing" and missing[0].detail["kernel"] == "ops.kernels.scale_kernel"
    assert "\nAUTOTUNE_REPLAY_FALLBACK reason=key_missing kernel=ops.kernels.scale_kernel key=" in ran.log
    assert {row.value for row in ran.rows} == {0.5}
    counts = {"used": "2", "missing": "2", "unused": "0"}
    assert ran.event("AUTOTUNE_REPLAY").detail == counts
    self_tuned = ", ".join(f"{event.detail['kernel']} {event.detail['key']}" for event in missing)
    assert ran.event("REPLAY_PARTIAL").detail == {**counts, "self_tuned": self_tuned}


@pytest.mark.slow
@pytest.mark.parametrize(
    "change, text",
    [
        (lambda key: dataclasses.replace(key, source_hash="0" * 64), "source 000000000000 recorded, "),
        (lambda key: dataclasses.replace(key, candidates_hash="0" * 64), "2 candidates (000000000000) recorded, 2 "),
    ],
)
def test_a_record_of_another_kernel_or_of_other_candidates_is_refused(tmp_path, device_record, change, text):
    ran = run(tmp_path / "run", "scale", DEVICE_CELL, record=edited(device_record, tmp_path / "record.json", change))
    assert ran.rc == 1 and not ran.rows
    refused = ran.event("AUTOTUNE_REPLAY_REFUSED")
    assert refused.detail["kernel"] == "ops.kernels.scale_kernel"
    assert text in refused.detail["reason"] and refused.detail["reason"].endswith("record again")
    assert "AUTOTUNE_REPLAY_REFUSED" in ran.event("ROW_FAILED").detail["error"]


@pytest.mark.slow
def test_a_shared_tuner_database_with_another_choice_in_it_is_refused(tmp_path, device_record):
    record = edited(device_record, tmp_path / "record.json", lambda key: dataclasses.replace(key, winner=SLOW))
    database = str(device_record.attempt / "tuner.db")
    ran = run(tmp_path / "run", "shift", DEVICE_CELL, record=record, TUNER_DB=database)
    assert ran.rc == 1 and not ran.rows
    assert "its tuner cache already holds another config" in ran.event("AUTOTUNE_REPLAY_REFUSED").detail["reason"]


@pytest.mark.slow
def test_where_nothing_can_be_timed_the_record_holds_candidates_and_no_winner(aot_record):
    assert aot_record.record.timer == "compile"
    assert all(key.winner is None and key.candidates == (SLOW, QUICK) for key in aot_record.record.keys)


@pytest.mark.slow
def test_a_record_made_by_another_timer_is_refused_before_anything_runs(tmp_path, aot_record):
    ran = run(tmp_path / "run", "scale", DEVICE_CELL, record=aot_record.attempt / "autotune.json")
    assert ran.rc == 4
    assert "recorded for op double by timer compile, this cell is double by direct; record again" in ran.log


@pytest.mark.slow
def test_an_operator_without_a_tuner_says_that_replay_does_not_apply(aot_failing):
    assert aot_failing.event("AUTOTUNE_NOT_APPLICABLE").row == ""
    assert aot_failing.record.keys == ()  # written all the same: a replay without a record is refused


TUNERS = {"double": [], "scale": ["triton"], "shift": ["libtuner"], "tuned_twice": ["libtuner", "triton"]}


@pytest.fixture(scope="module", params=TUNERS)
def each_kind(request, tmp_path_factory):
    """Round 0 and a measured cell of an op tuned by no tuner, by Triton's, by a LibTuner, and by both."""
    op, place = request.param, tmp_path_factory.mktemp(request.param)
    cell = make_cell(**ON_FAKE_DEVICE, dtypes=("float16",), pytest_args=("--dtypes", "float16"))
    test = f"test_{op} and not halved"
    record = run(place / "record", test, cell)
    return op, record, run(place / "replay", test, replaying(cell), record=record.attempt / "autotune.json")


@pytest.mark.slow
def test_every_kind_of_tuner_is_recorded_and_replayed_in_full(each_kind):
    op, record, replayed = each_kind
    assert record.rc == replayed.rc == 0, record.log + replayed.log
    assert sorted({key.tuner for key in record.record.keys}) == TUNERS[op]
    assert record.event("AUTOTUNE_RECORDED").detail == {"keys": str(len(record.record.keys))}
    assert ("AUTOTUNE_NOT_APPLICABLE" in replayed.codes) == (not TUNERS[op])
    if TUNERS[op]:
        used = str(len(record.record.keys))
        assert replayed.event("AUTOTUNE_REPLAY").detail == {"used": used, "missing": "0", "unused": "0"}
    assert not {"REPLAY_PARTIAL", "AUTOTUNE_REPLAY_FALLBACK"} & set(replayed.codes)
    assert [row.value for row in replayed.rows] == [row.value for row in record.rows]


@pytest.mark.slow
def test_in_first_mode_every_tuner_takes_its_first_candidate_without_benchmarking(tmp_path):
    cell = make_cell(**ON_FAKE_DEVICE, autotune="first")
    ran = run(tmp_path / "run", "test_double or scale or shift or tuned_twice", cell)
    assert ran.rc == 0, ran.log
    tuned = [row for row in ran.rows if row.op in ("scale", "shift")]
    assert len(tuned) == 8 and {row.value for row in tuned} == {1.0}, "the first is the slower one"
    assert ran.rows_of("tuned_twice")[0].value == 2.0
    assert ran.fingerprint.compile_count == len([v for v in ran.fingerprint.variants if v.launched]), (
        "no loser compiled"
    )
    assert ran.event("AUTOTUNE_FIRST").detail == {"keys": "6"}
    assert not (ran.attempt / "autotune.json").exists()
    assert (ran.identity.autotune_mode, ran.identity.autotune_digest) == ("first", "")


@pytest.mark.slow
def test_in_first_mode_backend_aot_compiles_the_first_candidate_for_every_row(tmp_path):
    ran = run(tmp_path / "run", "scale or shift", make_cell(autotune="first", pytest_args=("--dtypes", "float16")))
    assert ran.rc == 0, ran.log
    assert [(row.op, row.config) for row in ran.rows] == [("scale", ""), ("scale", ""), ("shift", ""), ("shift", "")]
    assert all(row.value for row in ran.rows)
    assert {variant.options for variant in ran.fingerprint.variants if variant.launched} == {"num_warps=2 num_stages=3"}


@pytest.fixture
def current(tmp_path, monkeypatch):
    found = session.Session(make_cell(), tmp_path, started_cold=True)
    monkeypatch.setattr(session, "current", lambda: found)
    return found


EMPTY = AutotuneRecord("double", "3.7.1 abc", "direct", "exclusive", ())
SEEN = Seen("triton", "ops.mm", "a" * 64, "[64]", (SLOW, QUICK))


class Config:
    def __init__(self, config):
        self.kwargs, self.pre_hook = dict(config.kwargs), None
        self.__dict__.update(config.options)


def test_a_choice_outside_the_candidates_is_left_out_and_told(current):
    recorder = Recorder(EMPTY, compile_only=False)
    recorder.chosen(SEEN, Config(TunedConfig({"BLOCK": 512}, {"num_warps": 8})))
    recorder.conclude()
    assert "AUTOTUNE_RECORD_INCOMPLETE" in (current.attempt / "events.jsonl").read_text()
    assert '"keys": []' in (current.attempt / "autotune.json").read_text()


def test_two_kernels_of_one_name_are_told_apart_by_their_source(current):
    recorder = Recorder(EMPTY, compile_only=False)
    other = dataclasses.replace(SEEN, source_hash="b" * 64)
    recorder.chosen(SEEN, Config(QUICK))
    recorder.chosen(other, Config(SLOW))
    recorder.conclude()
    replayer = Replayer(replay.codec.read(AutotuneRecord, current.attempt / "autotune.json"), "double", "direct")
    candidates = [Config(SLOW), Config(QUICK)]
    assert replayer.look_up(SEEN, candidates) is candidates[1]
    assert replayer.look_up(other, candidates) is candidates[0]


def test_another_operators_record_is_refused(current):
    with pytest.raises(ReplayRefused, match="recorded for op double by timer direct, this cell is mm by direct"):
        Replayer(EMPTY, "mm", "direct")


def test_many_self_tuned_keys_are_counted_and_the_first_are_named(current):
    replayer = Replayer(EMPTY, "double", "direct")
    for number in range(5):
        replayer.look_up(dataclasses.replace(SEEN, key=f"[{number}]"), [Config(SLOW)])
    replayer.conclude()
    events = list(replay.codec.read_lines(Event, current.attempt / "events.jsonl"))
    assert events[-1].code == "REPLAY_PARTIAL"
    assert events[-1].detail["self_tuned"] == "ops.mm [0], ops.mm [1], ops.mm [2] and 2 more"


def test_a_first_mode_without_any_candidate_left_is_refused(current):
    with pytest.raises(ReplayRefused, match=r"no candidate is left for key \[64\]"):
        First().look_up(SEEN, [])
