"""The compile step in a whole campaign: after round 0, before the pair of round 1, without a lane."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness import codec
from harness.compilations import Ahead
from tests.backends.fakes import BIN
from tests.workflow.project import Project
from tests.workflow.test_plans import dry_run

ENTRY = 'if __name__ == "__main__":'
#: Round 0 leaves what it launched; the step answers, or ends as $FAKE_AHEAD says.
STEP = """
def ahead(arguments):
    given = dict(word[2:].split("=", 1) for word in arguments if word.startswith("--"))
    side = os.environ["TRITON_CACHE_DIR"].split("cache_")[1][0]
    with open(os.environ["FAKE_PLAN"] + ".log", "a", encoding="utf-8") as log:
        log.write(f"ahead_{side} {os.environ['CUDA_VISIBLE_DEVICES']!r}\\n")
    if os.environ.get("FAKE_AHEAD"):
        sys.exit(os.environ["FAKE_AHEAD"])
    counts = {"asked": 1, "compiled": 1, "cached": 0, "missing": {}, "reason": "", "elapsed_s": 0.0}
    Path(given["result"]).write_text(json.dumps({"op": "mm", "side": side, **counts}))
    return 0


if "harness.plugins.ahead" in sys.argv:
    sys.exit(ahead(sys.argv))
if "pytest" in sys.argv and "/r0_A/" in os.environ["CALIBER_ATTEMPT"]:
    Path(os.environ["CALIBER_ATTEMPT"], "specializations.jsonl").write_text("")
"""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
    found = Project(tmp_path, ops=("mm",), rounds=2)
    cuda(found)
    target = found.root / "target"
    text = target.read_text(encoding="utf-8")
    target.write_text(text.replace(ENTRY, STEP + ENTRY), encoding="utf-8")
    return found


def cuda(project: Project, **measure) -> None:
    """The project's campaign on a device that has to be leased, with caches shared by a side's cells."""
    project.extra = {"backend": "cuda", "telemetry": {"interval_s": 0}}
    project.configure(measure={"rounds": 2, "cell_timeout_s": 60, **measure})
    path = project.root / "config" / "config.yaml"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if not line.startswith("target:")))


def test_each_side_has_a_compile_step_unless_nothing_is_shared(project, capsys):
    assert dry_run(project, capsys)["compile_ahead"] == 2
    cuda(project, compile_cache="cell")
    assert "compile_ahead" not in dry_run(project, capsys)


@pytest.mark.campaign
def test_both_sides_are_compiled_between_round_0_and_round_1(project):
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    starts = [line.split()[0] for line in project.measured()]
    assert starts[0] == "mm/r0_A" and set(starts[1:3]) == {"ahead_A", "ahead_B"} and len(starts) == 7
    assert [line for line in project.measured() if line.startswith("ahead")][0].endswith(" ''"), "no device is visible"
    assert {codec.read(Ahead, project.results / f"mm/ahead_{side}.json").compiled for side in "AB"} == {1}
    status = project.status("mm/r1_A")
    assert status is not None and 0 < status.phases_s["lease"] < status.phases_s["target"]
    assert "## Occupancy" in (project.results / "report.md").read_text()
    project.forget()
    Path(project.results / "mm/ahead_A.json").unlink()
    assert project.run().returncode == 0 and project.measured() == [], "what is measured needs it no more"


@pytest.mark.campaign
def test_a_compile_step_that_fails_does_not_fail_the_campaign(project, monkeypatch):
    monkeypatch.setenv("FAKE_AHEAD", "RuntimeError: no such compiler")
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    assert project.outcomes()["mm/r2_B"] == "measured"
    assert codec.read(Ahead, project.results / "mm/ahead_B.json").reason.endswith("RuntimeError: no such compiler")
