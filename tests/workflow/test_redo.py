"""A cell is taken back and measured again by a plain re-run: real Snakemake, real runner, real files."""

from __future__ import annotations

from harness import store, verify
from harness.__main__ import main
from harness.records import ExitCode
from tests.workflow.project import Project


def test_after_a_redo_a_plain_rerun_measures_that_cell_and_no_other(tmp_path, capsys):
    project = Project(tmp_path, ops=("add", "mm"), rounds=2)
    assert project.run().returncode == 0
    rows = (project.results / "mm/r2_B/attempts/1/rows.jsonl").read_bytes()
    assert main(["redo", str(project.results / "mm/r2_B"), "--reason", "the fan was off"]) == ExitCode.DONE
    assert "a plain `snakemake` measures it again" in capsys.readouterr().out
    project.forget()
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    assert project.measured() == ["mm/r2_B ok"]
    assert project.status("mm/r2_B").attempt == 2
    assert (project.results / "mm/r2_B/attempts/1/rows.jsonl").read_bytes() == rows, "the old evidence stays"
    (old,) = store.superseded(project.results / "mm/r2_B")
    assert (old.reason, old.status.attempt) == ("the fan was off", 1)
    report = (project.results / "report.md").read_text(encoding="utf-8")
    assert "## Superseded cells" in report and "| mm/r2_B | the fan was off |" in report
    assert (project.results / "mm/verdict.json").exists()
    assert verify.verify(project.results).exit_code is ExitCode.DONE
    project.forget()
    assert project.run().returncode == 0 and project.measured() == []


def test_a_redone_record_is_made_anew_and_every_cell_replays_it(tmp_path, capsys):
    project = Project(tmp_path, ops=("add", "mm"), rounds=2)
    assert project.run().returncode == 0
    cell = str(project.results / "mm/r0_A/cell.json")
    assert main(["redo", cell, "--reason", "tuned while busy"]) == ExitCode.FAILED
    assert "add --with-dependents" in capsys.readouterr().err
    assert main(["redo", cell, "--reason", "tuned while busy", "--with-dependents"]) == ExitCode.DONE
    project.forget()
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    assert sorted(project.measured()) == ["mm/r0_A ok", "mm/r1_A ok", "mm/r1_B ok", "mm/r2_A ok", "mm/r2_B ok"]
    assert (project.results / "mm/autotune.json").exists()


def test_a_redone_round_one_asks_the_gate_again(tmp_path):
    project = Project(tmp_path, ops=("add", "mm"), rounds=2)
    assert project.run().returncode == 0
    for op in ("add", "mm"):
        assert main(["redo", str(project.results / op / "r1_B"), "--reason", "another cache"]) == ExitCode.DONE
        assert not (project.results / op / "gate.json").exists()
    assert "add/r2_A" not in project.outcomes(), "skipped by the old gate"
    assert project.outcomes()["mm/r2_A"] == "measured", "measured, whatever the gate will say"
    project.forget()
    assert project.run().returncode == 0
    assert project.measured() == ["add/r1_B ok", "mm/r1_B ok"]
    assert project.outcomes()["add/r2_A"] == "skipped", "the new gate says again that no code changed"
    assert store.gate(project.results, "add").verdict == "NO_CODE_CHANGE"
    assert store.gate(project.results, "mm").verdict == "CODE_CHANGED", "no later cell was left to ask for it"
