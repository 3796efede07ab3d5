"""redo: a terminal cell is taken back with its reason, and all that rests on it; nothing is ever deleted."""

import dataclasses
import json

import pytest

from harness import campaign, codec, progress, redo, store
from harness.__main__ import main
from harness.records import ExitCode, Outcome, Status
from tests import evidence, finished


@pytest.fixture
def directory(tmp_path):
    found = finished.reported(tmp_path / "results" / "demo")
    codec.write_text(found / "mm/autotune.json", "the record\n")
    return found


def ended(directory):
    """Cells of mm with a terminal status."""
    return sorted(path.parent.name for path in directory.glob("mm/*/status.json"))


def test_the_status_moves_into_the_attempt_with_who_when_and_why(directory, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    before = codec.read(Status, directory / "mm/r3_B/status.json")
    (old,) = redo.redo(directory / "mm/r3_B/cell.json", "fan  was\n off", False)
    assert (old.cell, old.reason, old.by, old.because_of) == ("mm/r3_B", "fan was off", "ada", "mm/r3_B")
    assert old.status == before and old.at.endswith("+00:00")
    assert store.superseded(directory / "mm/r3_B") == (old,)
    assert store.status(directory / "mm/r3_B") is None and store.last_attempt(directory / "mm/r3_B") is None
    assert (directory / "mm/r3_B/attempts/1/rows.jsonl").exists(), "the evidence stays"
    assert "r3_A" in ended(directory) and len(ended(directory)) == 12, "no other cell rests on it"


def test_the_verdict_goes_with_it_and_is_kept(directory):
    verdict = (directory / "mm/verdict.json").read_bytes()
    redo.redo(directory / "mm/r3_B", "why", False)
    assert not (directory / "mm/verdict.json").exists()
    assert (directory / "mm/r3_B/attempts/1/superseded/verdict.json").read_bytes() == verdict
    assert (directory / "mm/gate.json").exists() and (directory / "mm/autotune.json").exists()
    assert (directory / "add/verdict.json").exists()


def test_a_cell_of_round_one_takes_the_gate_and_the_cells_it_skipped(tmp_path):
    cells = evidence.gated(finished.op_cells("mm"))
    skipped = {"SWITCH_NO_IR_DIFF": 1}
    for number in range(2, 7):
        for side in "AB":
            cells = evidence.change_status(cells, f"r{number}_{side}", markers=skipped)
    directory = finished.reported(tmp_path, mm=cells)
    found = redo.redo(directory / "mm/r1_A", "another cache", False)
    assert [old.because_of for old in found] == ["mm/r1_A"] * 11 and found[-1].cell == "mm/r1_A"
    assert ended(directory) == ["r0_A", "r1_B"]
    assert (directory / "mm/r1_A/attempts/1/superseded/gate.json").exists() and not (
        directory / "mm/gate.json"
    ).exists()


def test_a_failed_cell_takes_those_that_were_skipped_for_it(tmp_path):
    cells = finished.op_cells("mm")
    cells = evidence.change_status(cells, "r2_A", outcome=Outcome.OP_FAILED, reason="boom")
    for key in ("r3_A", "r3_B"):
        cells = evidence.change_status(cells, key, outcome=Outcome.SKIPPED, reason="mm/r2_A failed: boom")
    cells = evidence.change_status(cells, "r4_A", outcome=Outcome.SKIPPED, reason="the benchmark skipped itself")
    directory = finished.reported(tmp_path, mm=cells)
    found = redo.redo(directory / "mm/r2_A", "a driver update", False)
    assert sorted(old.cell for old in found) == ["mm/r2_A", "mm/r3_A", "mm/r3_B"]


def test_the_record_is_replaced_only_with_every_cell_that_replayed_it(directory):
    with pytest.raises(redo.RedoError, match=r"12 measured cells replayed \(mm/r1_A, .*: add --with-dependents"):
        redo.redo(directory / "mm/r0_A", "tuned while busy", False)
    assert len(ended(directory)) == 13 and (directory / "mm/verdict.json").exists(), "refused as a whole"
    codec.write_text(directory / "mm/ahead_B.json", "what was compiled ahead of the old record\n")
    found = redo.redo(directory / "mm/r0_A", "tuned while busy", True)
    assert len(found) == 13 and ended(directory) == []
    kept = {path.name for path in (directory / "mm/r0_A/attempts/1/superseded").iterdir()}
    assert kept == {"ahead_B.json", "autotune.json", "gate.json", "verdict.json"}
    assert not (directory / "mm/autotune.json").exists(), "no cell may replay it any more"


def test_the_shards_of_round_zero_go_with_it(directory):
    shard = dataclasses.replace(codec.read(Status, directory / "mm/r0_A/status.json"))
    (directory / "mm/sweep_s1/attempts/1").mkdir(parents=True)
    codec.write(directory / "mm/sweep_s1/status.json", shard)
    assert "mm/sweep_s1" in [old.cell for old in redo.redo(directory / "mm/r0_A", "why", True)]


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_redo_without_a_reason_is_refused(directory, reason, capsys):
    assert main(["redo", str(directory / "mm/r3_B"), "--reason", reason]) == ExitCode.FAILED
    assert "--reason is empty" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["redo", str(directory / "mm/r3_B")])
    assert len(ended(directory)) == 13


def test_a_running_campaign_is_refused(directory):
    with (
        campaign.take_lock(directory),
        pytest.raises(campaign.CampaignError, match="is being run by pid"),
    ):
        redo.redo(directory / "mm/r3_B", "why", False)
    assert len(ended(directory)) == 13


def test_a_cell_that_has_not_ended_is_refused(directory):
    (directory / "mm/r3_B/status.json").unlink()
    with pytest.raises(redo.RedoError, match="mm/r3_B: has no terminal status.*a plain re-run measures it"):
        redo.redo(directory / "mm/r3_B", "why", False)


@pytest.mark.parametrize("name", ["mm/r9_A", "nothing/r1_A", "frozen/harness"])
def test_what_is_no_cell_of_the_plan_is_refused(directory, name):
    with pytest.raises(redo.RedoError, match="is no cell of"):
        redo.redo(directory / name, "why", False)


def test_the_report_the_table_and_the_status_show_it_at_once(directory, capsys):
    assert main(["redo", str(directory / "mm/r3_B"), "--reason", "fan | off"]) == ExitCode.DONE
    assert "superseded mm/r3_B (measured): fan | off" in capsys.readouterr().out
    report = (directory / "report.md").read_text(encoding="utf-8")
    section = report[report.index("## Superseded cells") :]
    assert "| mm/r3_B | fan \\| off |" in section and "attempt 1: measured, 2 rows" in section
    assert "CELLS_MISSING" in report
    line = next(line for line in (directory / "status.tsv").read_text().splitlines() if "\t3\tmm\tB\t" in line)
    assert "\tmissing\t" in line and line.endswith("\t1\tsuperseded: fan | off")
    data = json.loads((directory / "report.json").read_text())
    assert [old["cell"] for old in data["superseded"]] == ["mm/r3_B"]
    files = json.loads((directory / "receipts.json").read_text())["files"]
    assert "mm/r3_B/attempts/1/superseded.json" in files and "mm/r3_B/attempts/1/rows.jsonl" in files
    assert "mm/r3_B/attempts/1/superseded/verdict.json" in files
    shown = progress.table(directory, store.read_plan(directory), False)
    assert "1 superseded" in shown and "mm/r3_B" in shown and "a plain re-run measures it again" in shown
    assert main(["verify", str(directory)]) == ExitCode.DONE
