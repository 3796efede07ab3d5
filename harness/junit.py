"""JUnit XML of a campaign for CI systems: a test case per operator. Pure text; the rulings are `ci`'s."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from harness.ci import OpRuling, Policy, rule
from harness.report import CampaignReport
from harness.statistics import DIRECTION

#: What XML 1.0 cannot hold at all, escaped or not: error texts bring colour codes along.
FORBIDDEN = re.compile(r"\x1b\[[0-9;]*m|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: How a CI system calls each ruling. Undecided is a skipped test, for it is neither a success nor a failure.
ELEMENT = {"fail": "failure", "error": "error", "undecided": "skipped"}


def document(report: CampaignReport, policy: Policy) -> str:
    """The whole file. `time` is what the op's cells took, in seconds."""
    rulings = rule(report, policy)
    counts = {name: sum(ruling.ruling == kind for ruling in rulings) for kind, name in ELEMENT.items()}
    seconds = {op: _seconds(report, op) for op in report.ops}
    totals = {
        "tests": str(len(rulings)),
        "failures": str(counts["failure"]),
        "errors": str(counts["error"]),
        "skipped": str(counts["skipped"]),
        "time": f"{sum(seconds.values()):.3f}",
    }
    root = ElementTree.Element("testsuites", {"name": "caliber", **totals})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _clean(report.campaign), **totals})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("direction", DIRECTION), ("fails", str(policy)), ("q", f"{report.judge.q:g}")):
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    for ruling in rulings:
        _case(suite, report, ruling, seconds[ruling.op])
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, report: CampaignReport, ruling: OpRuling, seconds: float) -> None:
    name = {"classname": f"caliber.{_clean(report.campaign)}", "name": ruling.op, "time": f"{seconds:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", name)
    why = "\n".join(str(reason) for reason in report.ops[ruling.op].reasons)
    if ruling.ruling == "pass":
        ElementTree.SubElement(case, "system-out").text = _clean(f"{ruling.text}\n{why}")
        return
    kind = {} if ruling.ruling == "undecided" else {"type": ruling.verdict.value}
    found = ElementTree.SubElement(case, ELEMENT[ruling.ruling], {**kind, "message": _clean(ruling.text)})
    found.text = _clean(why)


def _seconds(report: CampaignReport, op: str) -> float:
    return sum(item.status.elapsed_s for item in report.cells[op] if item.status)


def _clean(text: str) -> str:
    return FORBIDDEN.sub("", text)
