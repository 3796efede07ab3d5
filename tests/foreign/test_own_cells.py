"""Cells of a real campaign (the workflow, a fake target) are runs like any other."""

import pytest

from harness.__main__ import main
from tests.workflow.project import Project


@pytest.mark.campaign
def test_cells_of_a_campaign_are_compared_as_their_campaign_does(tmp_path, capsys):
    project = Project(tmp_path, ops=("add",), rounds=2, extra={"judge": {"allow_no_ir_diff": True}})
    ended = project.run()
    assert ended.returncode == 0, ended.stdout
    cells = project.results / "add"
    assert main(["ab", str(cells / "r1_A"), str(cells / "r1_B")]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("n_A 2  n_B 2  n_paired 2  rounds 1  complete\n")
    assert "2 rows from attempts/1/rows.jsonl (caliber)" in printed.out
    assert main(["ab", str(cells / "r1_A"), str(cells / "r2_A")]) == 4  # one side, twice
    assert "!!! [caliber] switch: sides do not differ" in capsys.readouterr().err
    assert main(["ab-rounds", str(cells)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("n_A 4  n_B 4  n_paired 4  rounds 2  complete\n")
    assert "gate.json is no round" in printed.err
    assert main(["ab", str(cells / "r0_A"), str(cells / "r1_B")]) == 1
    assert "r0_A: a cell of caliber that measured nothing (recorded)" in capsys.readouterr().err
    assert main(["ab-rounds", str(project.results)]) == 1
    assert "`caliber report" in capsys.readouterr().err
