"""report.json: the whole report as data, to the last digit, and its documented schema."""

from __future__ import annotations

import json
import math

import jsonschema
import pytest

from harness import codec, report_data, report_schema
from harness.findings import OpVerdict
from harness.records import Outcome
from harness.report_data import ReportData
from tests import evidence, finished

SCHEMA = report_schema.HERE / "schemas" / "report.schema.json"


@pytest.fixture
def campaign(tmp_path):
    """Every kind of op: a claim, one that was gated, a failure, a gap, a refusal."""
    same = finished.compiled(finished.variant("v0"))
    return finished.reported(
        tmp_path,
        mm=finished.op_cells("mm", 5.0),
        add=evidence.gated(finished.op_cells("add", A=same, B=same)),
        bad=evidence.change_status(finished.op_cells("bad"), "r2_B", outcome=Outcome.OP_FAILED, reason="boom"),
        part=evidence.change(finished.op_cells("part"), "r6_B", status=None),
        other=evidence.change_identity(finished.op_cells("other"), "r2_B", driver="571"),
    )


def data(directory):
    return json.loads((directory / "report.json").read_text(encoding="utf-8"))


def test_a_report_fits_its_documented_schema(campaign):
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data(campaign))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda found: found.update(extra=1), "Additional properties"),
        (lambda found: found["ops"][0].pop("verdict"), "'verdict' is a required property"),
        (lambda found: found["ops"][0].update(verdict="QUICK"), "'QUICK' is not one of"),
        (lambda found: found["ops"][0]["percent"].update(delta="5"), "'5' is not of type 'number'"),
    ],
)
def test_the_schema_refuses_what_is_no_report(campaign, spoil, message):
    found = data(campaign)
    spoil(found)
    with pytest.raises(jsonschema.ValidationError, match=message):
        jsonschema.validate(found, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_schema_on_file_is_made_from_the_declarations():
    text = SCHEMA.read_text(encoding="utf-8")
    assert text == report_schema.text(), "python -m harness.report_schema > harness/schemas/report.schema.json"


def test_the_schema_says_what_things_are():
    found = report_schema.schema()["$defs"]
    assert found["ReportData"]["description"].startswith("`report.json`. Estimates are log ratios")
    assert found["Percent"]["description"].startswith("An estimate in per cent of A's latency")
    assert found["OpData"]["properties"]["p_adjusted"]["description"] == "across ops"
    assert all(entry["description"] for entry in found.values())


def test_a_report_is_read_back_as_it_was_written(campaign):
    """report(load(dump(x))) == report(x) (ReBench #111)."""
    found = codec.read(ReportData, campaign / "report.json")
    assert codec.to_json(found) == data(campaign)
    assert found.schema == report_data.SCHEMA


def test_numbers_keep_their_last_digit_and_their_direction(campaign):
    found = data(campaign)
    op = next(op for op in found["ops"] if op["op"] == "mm")
    exact = codec.read(OpVerdict, campaign / "mm/verdict.json").estimate
    assert op["judged"]["estimate"]["delta"] == exact.delta
    assert op["percent"]["delta"] == 100 * math.expm1(exact.delta) > 4.9
    assert op["percent"]["low"] < op["percent"]["delta"] < op["percent"]["high"]
    assert found["direction"] == "B vs A latency, - = B faster"


def test_coverage_and_every_planned_cell_are_there(campaign):
    found = data(campaign)
    assert found["coverage"] == {
        "planned": 65, "measured": 48, "recorded": 5, "failed": 1, "skipped": 10, "missing": 1,
    }  # fmt: skip
    cells = {cell["key"]: cell for op in found["ops"] for cell in op["cells"]}
    assert len(cells) == 65
    assert cells["part/r6_B"]["outcome"] == "missing" and cells["part/r6_B"]["rc"] is None
    assert cells["mm/r1_A"]["rows"] == 2
    assert cells["bad/r2_B"]["reason"] == "boom"


def test_what_caliber_refused_is_said_with_its_cells(campaign):
    op = next(op for op in data(campaign)["ops"] if op["op"] == "other")
    (mismatch,) = op["mismatches"]
    assert mismatch["axis"] == "driver" and mismatch["values"]["571"] == ["other/r2_B"]


def test_the_verdict_is_the_one_after_the_correction_across_ops(campaign):
    found = codec.read(ReportData, campaign / "report.json")
    verdicts = {op.op: op.verdict.value for op in found.ops}
    assert verdicts == {
        "mm": "SLOWER", "add": "NO_CODE_CHANGE", "bad": "FAILED", "part": "INCOMPLETE", "other": "NOT_COMPARABLE",
    }  # fmt: skip
    assert found.exit_code == 4


def test_a_value_that_no_schema_can_say_is_an_error_not_a_gap():
    with pytest.raises(TypeError, match="no schema for"):
        report_schema._schema(set[int], {})
