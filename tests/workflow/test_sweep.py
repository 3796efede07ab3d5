"""A sharded sweep as Snakemake jobs: planned, on whose device, and what becomes of a shard that fails."""

from __future__ import annotations

import pytest

from harness import codec, store
from harness.records import AutotuneRecord, Event, Status
from tests.backends.fakes import path_with_fakes
from tests.workflow.project import Project
from tests.workflow.test_plans import dry_run

LANES = {"gpu0": 1, "gpu1": 1}
SHARDED = {"rounds": 2, "sweep_shards": 2, "cell_timeout_s": 60, "compile_cache": "cell"}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two ops on two (fake) NVIDIA devices, round 0 in two shards."""
    monkeypatch.setenv("PATH", path_with_fakes())
    devices = {"backend": "cuda", "target": "", "devices": [0, 1], "telemetry": {"interval_s": 0}}
    return Project(tmp_path, ops=("mm", "mm2"), devices=(0, 1), extra={**devices, "measure": SHARDED})


def swept(project: Project, op: str) -> dict[str, Status]:
    return {path.parent.name: store.status(path.parent) for path in project.results.glob(f"{op}/sweep_*/status.json")}


def sweep_events(project: Project, op: str) -> list[Event]:
    status = project.status(f"{op}/r0_A")
    events = store.events(project.results / f"{op}/r0_A/attempts/{status.attempt}")
    return [event for event in events if event.code.startswith("SWEEP_")]


def test_every_shard_of_every_op_is_a_job(project, capsys):
    jobs = dry_run(project, capsys, resources=LANES)
    assert (jobs["sweep_shard"], jobs["measure_cell"]) == (2 * 2, 2 * 5)


def test_one_serial_sweep_is_planned_where_none_is_asked_for(project, capsys):
    project.configure(measure={**SHARDED, "sweep_shards": 1})
    assert "sweep_shard" not in dry_run(project, capsys, resources=LANES)


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"measure": {**SHARDED, "level": "comprehensive"}}, "measure.sweep_shards: 2 with measure.level: compreh"),
        ({"measure": {**SHARDED, "tuning": "first"}}, "measure.sweep_shards: 2 with measure.tuning: first"),
        ({"backend": "aot", "target": "cuda:90"}, "measure.sweep_shards: 2 with backend: aot"),
    ],
)
def test_what_no_sweep_can_shard_is_refused_before_anything_is_planned(project, capsys, changes, keys):
    project.configure(**changes)
    with pytest.raises(Exception, match=keys):
        dry_run(project, capsys, resources=LANES)


def test_shards_use_both_lanes_come_first_and_seed_round_0(project):
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    started = [line.split()[0] for line in project.measured()]
    for op in ("mm", "mm2"):
        found = swept(project, op)
        assert {status.outcome.value for status in found.values()} == {"recorded"}
        assert len({status.device for status in found.values()}) == 2, "each on a device of its own"
        assert max(started.index(f"{op}/sweep_s{number}") for number in (0, 1)) < started.index(f"{op}/r0_A")
        assert sweep_events(project, op) == []
        assert (project.results / f"{op}/r0_A/attempts/1/seeds.json").exists()
        assert codec.read(AutotuneRecord, project.results / op / "autotune.json").op == op
    assert len(project.outcomes()) == 10, "shards are no cells of the plan"
    project.forget()
    assert project.run().returncode == 0
    assert project.measured() == []


@pytest.mark.parametrize(("word", "why"), [("fail", "op_failed: "), ("usage", "crashed: pytest ended with 4")])
def test_a_failed_shard_discards_the_sweep_of_its_op_and_fails_nothing(project, word, why):
    project.behave({"mm/sweep_s1": [word]})
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    assert {outcome for outcome in project.outcomes().values()} == {"measured", "recorded"}
    (event,) = sweep_events(project, "mm")
    assert (event.code, event.detail["reason"], event.detail["shard"]) == ("SWEEP_DISCARDED", "shard_failed", "1")
    assert event.detail["why"].startswith(why)
    assert "SWEEP_DISCARDED reason=shard_failed shard=1" in ended.stdout
    assert not (project.results / "mm/r0_A/attempts/1/seeds.json").exists()
    assert "fake target: mm/sweep_s1" in (project.results / "mm/sweep_s1/attempts/1/run.log").read_text(), "kept"
    assert (project.results / "mm/sweep_s0/attempts/1/run.log").exists()
    assert sweep_events(project, "mm2") == []
    project.forget()
    assert project.run().returncode == 0
    assert project.measured() == [], "a failed shard is not tried again"


def test_a_hole_in_the_sweep_is_swept_serially_within_the_same_attempt(project):
    project.behave({"mm/r0_A": ["hole"]})
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    assert [line for line in project.measured() if line.startswith("mm/r0_A")] == ["mm/r0_A hole"] * 2
    attempt = project.results / "mm/r0_A/attempts/1"
    assert (attempt / "discarded/seeds.json").exists() and not (attempt / "seeds.json").exists()
    assert project.outcomes()["mm/r0_A"] == "recorded"
    assert [event.detail["reason"] for event in sweep_events(project, "mm")] == ["key_missing"]
    assert "SWEEP_DISCARDED" in (project.results / "report.md").read_text()


def test_first_mode_campaign_needs_no_record(project):
    project.configure(measure={**SHARDED, "sweep_shards": 1, "tuning": "first"})
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    assert set(project.outcomes().values()) == {"measured", "recorded"}
    assert not list(project.results.glob("*/autotune.json"))
    cells = [codec.read(store.Cell, path) for path in project.results.glob("*/r*_?/cell.json")]
    assert {cell.autotune for cell in cells} == {"first"}
