"""`caliber ab` and `caliber ab-rounds` as a newcomer meets them: what is printed, where, and the exit code."""

from __future__ import annotations

import json

import pytest

from harness.__main__ import main
from tests.foreign.test_comparing import campaign
from tests.foreign.writing import bench, console, log, run, write

RELEASE = "--allow-caliber-mismatch"


def test_an_incomplete_pair_is_the_golden_report(repo_root, monkeypatch, capsys, golden):
    monkeypatch.chdir(repo_root / "tests" / "fixtures" / "foreign")
    assert main(["ab", "before", "after", RELEASE]) == 5
    printed = capsys.readouterr()
    assert printed.out.splitlines()[1] == "!!! [caliber] identity: missing -> before, after"
    golden("foreign_ab.txt", printed.out)


def test_six_rounds_are_the_golden_report(tmp_path, monkeypatch, capsys, golden):
    monkeypatch.chdir(tmp_path)
    campaign(tmp_path, 1.031)
    (tmp_path / "root" / "notes.txt").write_text("mine")
    assert main(["ab-rounds", "root"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "caliber: root/notes.txt is no round, and passed over\n"
    golden("foreign_ab_rounds.txt", printed.out)


def test_the_counts_come_first_and_an_incomplete_pair_has_no_overall_number(tmp_path, capsys):
    a, b = run(tmp_path / "a", [bench(), bench("cat")], "A"), run(tmp_path / "b", [bench()], "B")
    assert main(["ab", str(a), str(b)]) == 5
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "n_A 4  n_B 2  n_paired 2  rounds 1  INCOMPLETE"
    assert "no number over all ops: the two sides do not hold the same rows" in lines
    assert not any(line.startswith("geomean") for line in lines)


def test_a_refusal_of_caliber_is_exit_4_on_stderr_and_prints_no_number(tmp_path, capsys):
    a, b = (write(tmp_path / name, {"c.log": console([bench()])}) for name in "ab")
    assert main(["ab", str(a), str(b), "--json", str(tmp_path / "out.json")]) == 4
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[0] == f"!!! [caliber] identity: missing -> {a}, {b}"
    assert RELEASE in printed.err.splitlines()[1]
    assert not (tmp_path / "out.json").exists()


def test_json_holds_every_shape(tmp_path):
    a, b = run(tmp_path / "a", [bench()], "A"), run(tmp_path / "b", [bench()], "B")
    assert main(["ab", str(a), str(b), "--json", str(tmp_path / "out.json")]) == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["n_paired"], len(found["ops"]["mm"]["shapes"])) == (2, 2)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"c.log": console([bench()]).encode("utf-16")}, "is UTF-16"),
        ({"c.log": console([bench()]).replace("0.010000", "0,010000")}, "c.log:6: decimal comma in 0,010000"),
        ({"c.log": "nothing\n"}, "no row of a benchmark in"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_exit_1(tmp_path, files, message, capsys):
    good = write(tmp_path / "a", {"r.log": log([bench()])})
    assert main(["ab", str(good), str(write(tmp_path / "b", files)), RELEASE]) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert (printed.out, printed.err.count("\n")) == ("", 1)


def test_a_round_with_one_side_is_exit_5(tmp_path, capsys):
    run(tmp_path / "r1_A", [bench()], "A")
    assert main(["ab-rounds", str(tmp_path)]) == 5
    assert "round 1 has no B" in capsys.readouterr().err


def test_an_order_is_made_of_a_and_b(capsys):
    with pytest.raises(SystemExit):
        main(["ab-rounds", "x", "--order", "ABC"])
    assert "'ABC' is not made of A and B" in capsys.readouterr().err
