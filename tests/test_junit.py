"""junit: what a CI system reads of a campaign; well-formed whatever an error text holds."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from harness import codec, finish, junit
from harness.__main__ import main
from harness.ci import Policy
from harness.findings import Verdict
from harness.records import Outcome
from harness.report import assemble
from tests import evidence, finished
from tests.test_ci import report, saying

DEFAULT = Policy()


def parsed(found, policy=DEFAULT):
    return ElementTree.fromstring(junit.document(found, policy))


def test_an_op_is_a_test_case_and_the_counts_add_up():
    root = parsed(report(mm=3.0, add=0.0, gelu=-3.0))
    suite = root.find("testsuite")
    assert suite.get("name") == "demo"
    assert [case.get("name") for case in suite.iter("testcase")] == ["mm", "add", "gelu"]
    for element in (root, suite):
        assert [element.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "1", "0", "0"]
    assert float(suite.get("time")) == pytest.approx(3 * 13 * 10.0)
    assert sum(float(case.get("time")) for case in suite.iter("testcase")) == pytest.approx(float(root.get("time")))


def test_a_slowdown_is_a_failure_with_its_numbers():
    failure = parsed(report(mm=3.0), Policy(1.0)).find(".//failure")
    assert failure.get("type") == "SLOWER"
    assert failure.get("message").startswith("SLOWER: B 3.0 % slower [") and "limit 1 %" in failure.get("message")
    assert "EFFECT" in failure.text
    assert parsed(report(mm=3.0), Policy(4.0)).find(".//failure") is None


@pytest.mark.parametrize(
    ("verdict", "element"),
    [
        (Verdict.NOT_COMPARABLE, "error"),
        (Verdict.FAILED, "error"),
        (Verdict.INCOMPLETE, "error"),
        (Verdict.UNRESOLVED, "skipped"),
        (Verdict.IR_UNKNOWN, "skipped"),
        (Verdict.SAME, "system-out"),
        (Verdict.FASTER, "system-out"),
    ],
)
def test_a_verdict_becomes_what_a_ci_system_calls_it(verdict, element):
    (case,) = parsed(saying(verdict)).iter("testcase")
    assert [child.tag for child in case] == [element]
    if element != "system-out":
        assert verdict.value in case[0].get("message")


def test_error_texts_cannot_break_the_file(tmp_path):
    text = '\x1b[31mRuntimeError\x1b[0m: <bad & "worse"> \x00\x07 ü'
    cells = evidence.change_status(finished.op_cells("mm"), "r2_B", outcome=Outcome.OP_FAILED, reason=text)
    directory = finished.reported(tmp_path, mm=cells)
    root = ElementTree.parse(directory / "report.junit.xml").getroot()
    assert 'RuntimeError: <bad & "worse">  ü' in root.find(".//error").get("message")


def test_an_empty_campaign_is_an_empty_suite():
    assert parsed(assemble("demo", {}, {}, evidence.JUDGE)).get("tests") == "0"


def test_the_gate_writes_the_file_it_ruled_by(tmp_path):
    directory, target = finished.reported(tmp_path / "demo"), tmp_path / "ci" / "junit.xml"
    main(["gate", str(directory), "--max-slower", "6%", "--junit", str(target)])
    assert ElementTree.parse(target).getroot().get("failures") == "0"
    assert codec.read_text(directory / "report.junit.xml") == junit.document(finish.collect(directory), Policy())
