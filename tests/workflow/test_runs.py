"""Whole campaigns of a fake target: order, skips, resume, refusals. Real Snakemake, real runner, real files."""

from __future__ import annotations

from datetime import datetime

import pytest

from harness import codec
from harness.findings import OpVerdict
from harness.records import Outcome
from tests.workflow.project import Project


def test_a_campaign_runs_in_plan_order_and_ends_with_a_report(tmp_path):
    project = Project(tmp_path, ops=("add", "mm"), rounds=2)
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    keys = [line.split()[0] for line in project.measured()]
    assert keys[0] == "add/r0_A"
    assert [key.split("/")[0] for key in keys] == sorted(key.split("/")[0] for key in keys), "one op after the other"
    rounds = [int(key.split("/r")[1][0]) for key in keys if key.startswith("mm")]
    assert rounds == sorted(rounds)
    assert (project.results / "report.md").exists()
    assert (project.results / "status.tsv").read_text().count("\n") == 1 + 10


def test_a_switch_that_changes_no_code_skips_the_later_rounds_and_says_so(tmp_path):
    project = Project(tmp_path, ops=("add", "mm"), rounds=2)
    project.run()
    outcomes = project.outcomes()
    assert {outcomes[f"add/r2_{side}"] for side in "AB"} == {"skipped"}
    assert {outcomes[f"mm/r2_{side}"] for side in "AB"} == {"measured"}
    status = project.status("add/r2_A")
    assert status.markers["SWITCH_NO_IR_DIFF"] == 1
    assert status.reason.startswith("SWITCH_NO_IR_DIFF verdict=NO_CODE_CHANGE")


def test_a_second_run_measures_nothing(tmp_path):
    project = Project(tmp_path)
    project.run()
    project.forget()
    ended = project.run()
    assert ended.returncode == 0
    assert project.measured() == []


def test_a_plain_rerun_resumes_exactly_the_retryable_and_missing_cells(tmp_path):
    project = Project(tmp_path, ops=("mm", "mm2", "mm3"), rounds=2)
    project.behave({"mm/r1_B": ["usage", "ok"], "mm2/r1_A": ["fail"]})
    first = project.run()
    assert first.returncode == 1
    assert "mm/r1_B" not in project.outcomes()
    assert project.outcomes()["mm2/r1_A"] == "op_failed"
    assert project.outcomes()["mm2/r2_A"] == "skipped", "a failed op burns no more device time"
    assert (project.results / "mm3" / "verdict.json").exists(), "other ops are judged"
    assert not (project.results / "mm" / "verdict.json").exists(), "an unfinished op is withheld"
    project.forget()
    second = project.run()
    assert second.returncode == 0, second.stdout
    assert sorted(project.measured()) == ["mm/r1_B ok", "mm/r2_A ok", "mm/r2_B ok"]
    assert codec.read(type(project.status("mm/r1_B")), project.results / "mm/r1_B/attempts/1/status.json").outcome is (
        Outcome.CRASHED
    ), "the first attempt stays as evidence"


def test_a_hung_cell_is_named_and_does_not_hold_the_campaign(tmp_path):
    project = Project(tmp_path, ops=("mm",), rounds=2)
    project.configure(measure={"rounds": 2, "cell_timeout_s": 2})
    project.behave({"mm/r1_A": ["hang", "ok"]})
    ended = project.run()
    assert ended.returncode == 1
    assert "mm/r1_A timed_out" in ended.stdout
    assert "124" in (project.results / "status.tsv").read_text()


@pytest.mark.parametrize(
    ("change", "axis"),
    [
        ({"measure": {"rounds": 4}}, "config_digest"),
        ({"sides": None}, "config_digest"),
    ],
)
def test_a_campaign_is_not_continued_with_something_else(tmp_path, change, axis):
    project = Project(tmp_path, ops=("add",), rounds=2)
    assert project.run().returncode == 0
    if "sides" in change:
        side = {"python": str(project.root / "target")}
        change = {"sides": {"A": side, "B": {**side, "env": {"OTHER": "1"}}}}
    project.configure(**change)
    ended = project.run("-n")
    assert ended.returncode != 0
    assert "!!! [caliber] seal of" in ended.stdout
    assert axis in ended.stdout


def test_a_changed_provider_is_refused(tmp_path):
    project = Project(tmp_path, ops=("add",), rounds=2)
    assert project.run().returncode == 0
    (project.root / "gems/benchmark/test_add.py").write_text("def test_add(): pass\n")
    ended = project.run()
    assert "provider_digest: sealed" in ended.stdout


def test_changing_judge_judges_again_and_measures_nothing(tmp_path):
    project = Project(tmp_path, ops=("mm", "mm2"), rounds=2)
    assert project.run().returncode == 0
    before = (project.results / "mm/verdict.json").read_text()
    project.forget()
    project.configure(judge={"margin_pct": 20.0})
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    assert project.measured() == []
    assert (project.results / "mm/verdict.json").read_text() != before
    assert "Margin 20 %" in (project.results / "report.md").read_text()


def test_a_lost_judge_json_is_written_again_and_measures_nothing(tmp_path):
    project = Project(tmp_path, ops=("mm",), rounds=2)
    assert project.run().returncode == 0
    project.forget()
    (project.results / "judge.json").unlink()
    assert project.run().returncode == 0
    assert project.measured() == []
    assert (project.results / "judge.json").exists()


def test_the_runner_of_an_ops_last_cell_writes_its_verdict(tmp_path):
    """People read it while the other operators still run; no job of its own stands between."""
    project = Project(tmp_path, ops=("mm", "mm2"), rounds=2)
    project.behave({"mm2/r2_B": ["usage"], "mm2/r2_A": ["usage"]})
    assert project.run().returncode == 1
    found = codec.read(OpVerdict, project.results / "mm/verdict.json")
    assert (found.op, len(found.shapes)) == ("mm", 2)
    ended = project.status("mm/r2_B").ended_at, project.status("mm/r2_A").ended_at
    written = (project.results / "mm/verdict.json").stat().st_mtime
    later = datetime.fromisoformat(project.status("mm2/r1_A").started_at).timestamp()
    assert datetime.fromisoformat(max(ended)).timestamp() <= written + 1 <= later + 1
    assert not (project.results / "mm2/verdict.json").exists()


@pytest.mark.parametrize("flag", ["--keep-incomplete", "-F", "--touch", "--nolock"])
def test_forbidden_flags_are_refused_before_anything_runs(tmp_path, flag):
    project = Project(tmp_path, ops=("add",))
    ended = project.run(flag)
    assert ended.returncode != 0
    assert f"snakemake {flag} is refused" in ended.stdout
    assert project.measured() == []


def test_two_lanes_never_run_two_cells_of_one_device(tmp_path):
    project = Project(tmp_path, ops=("mm", "mm2", "mm3", "mm4"), rounds=2, devices=(0, 1))
    assert project.run().returncode == 0
    spans = {}
    for path in project.results.glob("*/r*_?/status.json"):
        status = project.status(str(path.parent.relative_to(project.results)))
        spans.setdefault(status.device, []).append((status.started_at, status.ended_at))
    assert len(spans) == 2
    for intervals in spans.values():
        intervals.sort()
        starts_after = [later[0] >= earlier[1] for earlier, later in zip(intervals, intervals[1:], strict=False)]
        assert all(starts_after)
