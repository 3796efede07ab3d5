"""Incidents of evidence: what was lost, rewritten, or counted by a wrong rule (facts/incidents.md)."""

from __future__ import annotations

import dataclasses
import json

import pytest

from harness import ci, codec, finish, reaccount, receipts, redo, store, verify
from harness.campaign import CampaignError, refuse_flags
from harness.findings import OpVerdict, Verdict
from harness.records import ExitCode, Status
from tests import evidence, finished
from tests.finished import compiled, variant


def test_a_corrected_accounting_rule_needs_no_workload_measured_again(tmp_path):
    """32 workloads were run again because the rule that counted their conversions had been wrong."""
    ops = {}
    for number in range(32):
        launched = compiled(variant("v0", 3), variant("w0", 9, launched=False))
        other = compiled(variant("v0", 3, code="other"))
        cells = evidence.each_row(finished.op_cells(f"op{number}", A=launched, B=other), metrics={})
        ops[f"op{number}"] = evidence.side_rows(cells, "A", metrics={"convert_layout.ttgir": 12})
        ops[f"op{number}"] = evidence.side_rows(ops[f"op{number}"], "B", metrics={"convert_layout.ttgir": 3})
    directory = finished.write(tmp_path, ops)
    finish.render(directory)
    starts = sorted(directory.glob("*/*/attempts/*"))
    verdict = (directory / "op7/verdict.json").read_bytes()
    found = reaccount.reaccount(directory, "launched_kernels_v1")
    assert [item.change for item in found.workloads] == ["demoted"] * 32
    assert all(item.why.startswith("published REDUCED (sums over the paired rows: ") for item in found.workloads)
    assert sorted(directory.glob("*/*/attempts/*")) == starts, "nothing ran"
    assert (directory / "op7/verdict.json").read_bytes() == verdict, "what was published stays as it was"


def test_evidence_that_git_rewrote_is_named_as_such(tmp_path):
    """autocrlf rewrote the drivers, broke them and changed every recorded digest."""
    directory = finished.reported(tmp_path)
    for path in [*directory.rglob("*.py"), *directory.rglob("*.jsonl")]:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    found = verify.verify(directory)
    changed = [problem for problem in found.evidence if problem.kind == "changed"]
    assert len(changed) > 30 and all("line ends were rewritten to CRLF, nothing else" in each.text for each in changed)
    assert found.exit_code is ExitCode.CALIBER


def test_rows_without_their_status_are_no_evidence(tmp_path):
    """snakemake #3808: the output of a killed job was taken for complete. The status is the sentinel, written last."""
    cells = finished.op_cells("mm", 5.0)
    directory = finished.write(tmp_path, {"mm": cells})
    (directory / "mm/r4_B/status.json").unlink()
    assert (directory / "mm/r4_B/attempts/1/rows.jsonl").exists()
    assert store.evidence(directory, "mm/r4_B").rows == ()
    found, code = finish.render(directory)
    assert found.ops["mm"].verdict is Verdict.INCOMPLETE and code is ExitCode.INCOMPLETE
    assert not (directory / "mm/verdict.json").exists()


def test_a_status_counts_its_rows_and_hashes_its_evidence(tmp_path):
    """The same incident: a sentinel that does not say what it stands for would stand for half a file."""
    directory = finished.reported(tmp_path)
    status = codec.read(Status, directory / "mm/r4_B/status.json")
    path = directory / "mm/r4_B/attempts/1/rows.jsonl"
    assert status.success == status.rows_expected == len(path.read_text().splitlines()) == 2
    assert status.evidence_sha256["rows.jsonl"] == receipts.sha256(path)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    found = verify.verify(directory)
    assert any(problem.where == "mm/r4_B/attempts/1/rows.jsonl" for problem in found.evidence)
    assert any('derived "INCOMPLETE"' in problem.text for problem in found.derived)


def test_keep_incomplete_is_refused():
    """The same incident: the flag that made it happen."""
    with pytest.raises(CampaignError, match="--keep-incomplete is refused: it counts a failed cell as complete"):
        refuse_flags(["snakemake", "--keep-incomplete"])


def test_a_cell_measured_twice_says_so(tmp_path):
    """A status deleted by hand leaves no trace; a report over the better of two runs reads like any other."""
    directory = finished.reported(tmp_path)
    redo.redo(directory / "mm/r3_B", "the clock was pinned", False)
    again = next(item for item in finished.op_cells("mm", 5.0) if item.cell.key == "mm/r3_B")
    assert again.status is not None
    finished.write_cell(
        directory / "mm/r3_B", dataclasses.replace(again, status=dataclasses.replace(again.status, attempt=2))
    )
    finish.render(directory)
    assert "| mm/r3_B | the clock was pinned |" in (directory / "report.md").read_text(encoding="utf-8")
    assert verify.verify(directory).exit_code is ExitCode.DONE


def test_zero_matches_are_no_success(tmp_path):
    """nvbench, asv: no benchmark matched, exit 0."""
    directory = finished.write(tmp_path, {})
    found, code = finish.render(directory)
    assert code is ExitCode.INCOMPLETE
    assert ci.exit_code(ci.rule(found, ci.Policy())) is ExitCode.INCOMPLETE


def test_the_exit_code_is_no_count_and_an_improvement_no_failure(tmp_path):
    """NVIDIA/nvbench #383: the exit code was the number of differences, modulo 256, improvements included."""
    ops = {f"op{number}": finished.op_cells(f"op{number}", 5.0) for number in range(3)}
    found = finish.collect(finished.write(tmp_path / "slower", ops))
    assert int(ci.exit_code(ci.rule(found, ci.Policy()))) == 1
    faster = finish.collect(finished.write(tmp_path / "faster", {"mm": finished.op_cells("mm", -5.0)}))
    assert ci.exit_code(ci.rule(faster, ci.Policy())) is ExitCode.DONE


def test_what_is_written_is_read_back_as_it_was(tmp_path):
    """smarr/ReBench #111: a loaded result was not the fresh one."""
    directory = finished.reported(tmp_path)
    found = codec.read(OpVerdict, directory / "mm/verdict.json")
    assert codec.to_json(found) == json.loads((directory / "mm/verdict.json").read_text(encoding="utf-8"))
