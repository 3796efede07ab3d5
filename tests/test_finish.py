"""finish: the report of a campaign in all its forms, from what there is."""

from __future__ import annotations

import pytest

from harness import finish
from harness.records import ExitCode
from tests import evidence, finished

FORMS = {
    "report.md", "report.tsv", "report.json", "report.html", "report.junit.xml", "caliber.json", "status.tsv",
    "receipts.json",
}  # fmt: skip


def test_a_report_comes_in_all_its_forms(tmp_path):
    directory = finished.write(tmp_path, {"mm": finished.op_cells("mm", 5.0), "add": finished.op_cells("add")})
    found, code = finish.render(directory)
    assert {path.name for path in directory.iterdir()} >= FORMS
    assert code is ExitCode.DONE
    assert [line.verdict.value for line in found.verdict.ops] == ["SLOWER", "SAME"]


def test_the_same_files_give_the_same_report(tmp_path):
    directory = finished.reported(tmp_path)
    first = {name: (directory / name).read_bytes() for name in FORMS}
    finish.render(directory)
    assert {name: (directory / name).read_bytes() for name in FORMS} == first


def test_report_md_is_last_so_that_it_stands_for_all_of_them(tmp_path, monkeypatch):
    """Snakemake declares it alone: were it there without the others, nothing would ever make them."""
    directory = finished.write(tmp_path, {"mm": finished.op_cells("mm", 5.0)})

    def full(*arguments):
        raise OSError("No space left on device")

    monkeypatch.setattr(finish.receipts, "write", full)
    with pytest.raises(OSError, match="No space left"):
        finish.render(directory)
    assert not (directory / "report.md").exists()


def test_an_unfinished_campaign_has_a_report_that_says_so(tmp_path):
    cells = evidence.change(finished.op_cells("mm", 5.0), "r6_B", status=None)
    directory = finished.write(tmp_path, {"mm": cells, "add": finished.op_cells("add")})
    _, code = finish.render(directory)
    assert code is ExitCode.INCOMPLETE
    assert {path.name for path in directory.iterdir()} >= FORMS
    assert not (directory / "mm/verdict.json").exists() and (directory / "add/verdict.json").exists()
    assert (directory / "report.md").read_text(encoding="utf-8").splitlines()[2] == "## Coverage"


def test_looking_at_a_campaign_writes_nothing(tmp_path):
    directory = finished.write(tmp_path, {"mm": finished.op_cells("mm", 5.0)})
    before = sorted(directory.rglob("*"))
    found = finish.collect(directory)
    assert found.ops["mm"].verdict.value == "SLOWER"
    assert sorted(directory.rglob("*")) == before


def test_what_caliber_refused_is_shouted_and_the_terminal_gets_ten_lines(tmp_path, capsys):
    cells = evidence.change_identity(finished.op_cells("mm", 5.0), "r2_B", driver="571")
    code = finish.show(finished.write(tmp_path, {"mm": cells}))
    out, err = capsys.readouterr()
    assert code is ExitCode.CALIBER
    assert err.startswith("!!! [caliber] driver: ")
    assert len(out.splitlines()) <= 10
