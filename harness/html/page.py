"""The page put together: sections, one JSON block, style and script inline, and a policy that forbids everything else.

The policy names the script and the style by their hashes, so that even markup that slipped through could not run.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from harness import evidence_sections, verdict_sections
from harness.html import markup, sections
from harness.report import CampaignReport

_PLACE = re.compile(r"\{\{(\w+)\}\}")


def page(report: CampaignReport, ops: Sequence[str], receipts: Mapping[str, str]) -> str:
    """The whole of report.html. `ops`: payload.op_json of each op; `receipts`: path -> SHA-256."""
    template, style, script = (_resource(name) for name in ("template.html", "style.css", "script.js"))
    own = tuple(report.ops.values())
    before = (
        markup.html(evidence_sections.coverage(report.cells), _complete, "complete"),
        markup.html(evidence_sections.superseded(report.superseded)),
        markup.html(evidence_sections.meaning(report.cells, own, report.judge)),
        markup.html(evidence_sections.caliber(report.caliber, report.mismatches), _equal, "equal on both sides"),
        markup.html(verdict_sections.corpus(report.verdict)),
    )
    after = (
        evidence_sections.unpaired(own),
        evidence_sections.markers(report.cells),
        evidence_sections.order(own),
        evidence_sections.skipped(report.cells),
    )
    parts = {
        "title": f"caliber: {escape(report.campaign)}",
        "policy": _policy(style, script),
        "style": style,
        "header": sections.header(report),
        "before": _sections(before),
        "verdicts": sections.verdicts(report),
        "after": _sections(map(markup.html, after)),
        "receipts": sections.receipts(receipts),
        "data": _data(ops),
        "script": script,
    }
    return _PLACE.sub(lambda place: parts[place[1]], template)  # one pass: what is put in is never looked at again


def _sections(parts: Iterable[str]) -> str:
    return "\n".join(f"<section>{part}</section>" for part in parts if part)


def _complete(row: Sequence[str]) -> bool:
    """A line of the coverage that needs no look: nothing failed, skipped or missing, and every row is there."""
    got, _, expected = row[-1].partition(" / ")
    return row[2:5] == ["0", "0", "0"] and got == expected


def _equal(row: Sequence[str]) -> bool:
    return row[4] == "equal"


def _resource(name: str) -> str:
    return (files("harness.html") / name).read_text(encoding="utf-8")


def _data(ops: Sequence[str]) -> str:
    """`<` is the one character that could end a script element early; in JSON it may always be written so."""
    return "[" + ",\n".join(text.replace("<", "\\u003c") for text in ops) + "]"


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
