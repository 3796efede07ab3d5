"""reaccount: a finished campaign counted again under a named rule, beside its verdicts."""

import json
from dataclasses import replace

import pytest

from harness import codec, reaccount
from harness.__main__ import main
from harness.records import ExitCode
from tests import evidence, finished
from tests.finished import compiled, variant


@pytest.fixture
def campaign(tmp_path):
    """sort: half the conversions, really. mm: the rows say so, but only candidates that no row launched lost any."""
    real = finished.op_cells("sort", -4.0, A=compiled(variant("v0", 4)), B=compiled(variant("v0", 2)))
    rejected = [variant("w0", 30, launched=False)]
    chosen = compiled(variant("v0", 3, code="other"))
    apparent = finished.op_cells("mm", -4.0, A=compiled(variant("v0", 3), *rejected), B=chosen)
    return finished.reported(tmp_path, sort=counting(real, 4, 2), mm=counting(apparent, 33, 3))


def counting(cells, a, b):
    cells = evidence.each_row(cells, metrics={"convert_layout.ttgir": a})
    return evidence.side_rows(cells, "B", metrics={"convert_layout.ttgir": b})


def test_a_claim_that_the_rule_does_not_bear_out_is_taken_back_and_says_why(campaign, capsys):
    before = {path: path.read_bytes() for path in campaign.rglob("*.json")}
    assert main(["reaccount", str(campaign), "--rule", "launched_kernels_v1"]) == ExitCode.DONE
    out = capsys.readouterr().out
    assert out.startswith("demo: 2 workloads under launched_kernels_v1: 1 demoted, 0 not promoted\n")
    assert "mm: REDUCED -> SAME: published REDUCED (sums over the paired rows: ttgir 66 -> 6), SAME under this" in out
    found = json.loads((campaign / "reaccount/launched_kernels_v1.json").read_text())
    by_op = {item["op"]: item for item in found["workloads"]}
    assert (by_op["sort"]["stands"], by_op["sort"]["change"]) == ("REDUCED", "kept")
    assert (by_op["mm"]["stands"], by_op["mm"]["change"]) == ("SAME", "demoted")
    assert by_op["mm"]["published"]["totals"] == [{"stage": "ttgir", "a": 66, "b": 6}]
    assert by_op["mm"]["verdict"] == "FASTER", "the latency verdict is not the accounting's business"
    assert found["text"].startswith("Every variant that a cell launched, once each")
    assert {path: path.read_bytes() for path in before} == before, "nothing that was published is overwritten"


def test_the_same_files_and_rule_give_the_same_bytes(campaign):
    path = campaign / "reaccount/matched_variants_v1.json"
    reaccount.reaccount(campaign, "matched_variants_v1")
    first = path.read_bytes()
    reaccount.reaccount(campaign, "matched_variants_v1")
    assert path.read_bytes() == first
    assert codec.read(reaccount.Reaccount, path).rule == "matched_variants_v1"


def test_a_reduction_that_was_not_published_stays_unpublished(tmp_path):
    cells = finished.op_cells("mm", A=compiled(variant("v0", 4)), B=compiled(variant("v0", 2)))
    directory = finished.reported(tmp_path, mm=counting(cells, 4, 4))
    (found,) = reaccount.reaccount(directory, "launched_kernels_v1").workloads
    assert (found.found.topology.value, found.stands.value, found.change) == ("REDUCED", "SAME", "not promoted")


def test_a_fingerprint_that_is_not_the_runners_is_not_counted(campaign, capsys):
    path = campaign / "sort/r3_B/attempts/1/fingerprint.json"
    path.write_text(path.read_text().replace('"convert_layout.ttgir": 2', '"convert_layout.ttgir": 1'))
    assert main(["reaccount", str(campaign), "--rule", "launched_kernels_v1"]) == ExitCode.CALIBER
    error = capsys.readouterr().err
    assert error.startswith("!!! [caliber]") and "sort/r3_B/attempts/1/fingerprint.json: is " in error
    assert not (campaign / "reaccount").exists()


def test_an_op_without_a_verdict_is_named_not_counted(tmp_path):
    cells = evidence.change(finished.op_cells("mm"), "r6_B", status=None)
    directory = finished.reported(tmp_path, mm=cells, add=finished.op_cells("add"))
    found = reaccount.reaccount(directory, "all_variants_v1")
    assert found.without_verdict == ("mm",) and [item.op for item in found.workloads] == ["add"]
    assert "mm: no verdict on file" in reaccount.table(found)


def test_an_unknown_rule_is_refused_with_the_registry(campaign, capsys):
    assert main(["reaccount", str(campaign), "--rule", "v2"]) == ExitCode.FAILED
    assert "no rule 'v2'; the registry has all_variants_v1, launched_kernels_v1" in capsys.readouterr().err


def test_a_gated_op_is_counted_from_round_one(tmp_path):
    same = [compiled(variant("v0", 4))] * 2
    cells = evidence.gated(finished.op_cells("mm", A=same[0], B=same[1]))
    cells = tuple(replace(item, fingerprint=None) if item.cell.round > 1 else item for item in cells)
    directory = finished.reported(tmp_path, mm=counting(cells, 4, 4))
    (found,) = reaccount.reaccount(directory, "matched_variants_v1").workloads
    assert (found.verdict.value, found.stands.value) == ("NO_CODE_CHANGE", "SAME")
