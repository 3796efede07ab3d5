"""The parts of the page that need no script: what was asked, the answer, the table of verdicts, the receipts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from harness.findings import OpLine, OpVerdict, Verdict
from harness.grid import ABSENT, count, signed, signless
from harness.html import markup
from harness.records import CellEvidence, Outcome
from harness.report import CampaignReport
from harness.statistics import percent, words
from harness.store import switch_text

#: How a number of operators with a verdict is said.
SAID = {
    Verdict.SAME: "the same",
    Verdict.UNRESOLVED: "unresolved",
    Verdict.SIGN_UNSTABLE: "of unstable sign",
    Verdict.NO_CODE_CHANGE: "without a code change",
    Verdict.IR_DIFF_SAME_CODE: "with other IR but the same code",
    Verdict.IR_UNKNOWN: "whose code could not be compared",
    Verdict.NOT_COMPARABLE: "not comparable",
    Verdict.MIXED_TIMER: "timed by two timers",
    Verdict.INCOMPLETE: "incomplete",
    Verdict.POISONED: "poisoned by graph capture",
    Verdict.FAILED: "failed",
    Verdict.CLOCK_CONFOUNDED: "moved by the clock",
}
TITLES = (
    "operator", "verdict", "B vs A", "95 % interval", "same sign", "p adjusted", "noise A / B", "shapes", "code",
    "counts A -> B",
)  # fmt: skip
#: More files than this would be half of the page.
RECEIPTS = 1000
#: Titles by which a click sorts numbers; the others sort by their text.
NUMERIC = frozenset({"B vs A", "p adjusted", "noise A / B", "shapes"})


def header(report: CampaignReport) -> str:
    """Campaign, answer, and what was measured where and when."""
    cells = [item for own in report.cells.values() for item in own]
    facts = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in _facts(cells) if value)
    title = f"<h1>{escape(report.campaign)}</h1>"
    return f'{title}\n<p class="answer">{escape(answer(report))}</p>\n<dl class="facts">{facts}</dl>'


def answer(report: CampaignReport) -> str:
    """The campaign in one sentence: claims first, then what is no claim, then what is not there."""
    lines = report.verdict.ops
    found = Counter(line.verdict for line in lines)
    claims = f"B is faster on {found[Verdict.FASTER]} and slower on {found[Verdict.SLOWER]}"
    rest = "".join(f", {found[verdict]} {text}" for verdict, text in SAID.items() if found[verdict])
    cells = [item for own in report.cells.values() for item in own]
    missing = sum(item.status is None or not item.status.outcome.terminal for item in cells)
    lacking = f" Missing: {missing} of {len(cells)} cells." if missing else ""
    return f"Of {count(len(lines), 'operator')}, {claims}{rest}.{lacking}"


def verdicts(report: CampaignReport) -> str:
    """One row per op, for people without the script too; with it, sortable, filterable and to be opened."""
    head = "".join(
        f'<th scope="col" aria-sort="none"{" data-numeric" if title in NUMERIC else ""}>'
        f'<button type="button" class="sort">{escape(title)}</button></th>'
        for title in TITLES
    )
    rows = "\n".join(_row(line, report.ops[line.op]) for line in report.verdict.ops)
    table = f'<table id="ops"><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>'
    return f"{markup.heading('Verdicts')}\n{_controls(report.verdict.ops)}\n{markup.scrolling(table)}"


def receipts(files: Mapping[str, str]) -> str:
    """SHA-256 of the files that the verdicts rest on; of very many, those that are not one attempt's own."""
    listed = {path: digest for path, digest in files.items() if len(files) <= RECEIPTS or "/attempts/" not in path}
    rows = [(f"<code>{escape(path)}</code>", f"<code>{escape(digest)}</code>") for path, digest in listed.items()]
    more = len(files) - len(listed)
    left = f" {more} more, of single attempts, are in receipts.json." if more else ""
    hint = f"<p>SHA-256 of every file that a verdict rests on; <code>caliber verify</code> checks them.{left}</p>"
    return f"{markup.heading('Receipts')}{hint}{markup.table(('file', 'SHA-256'), rows)}"


def _facts(cells: Sequence[CellEvidence]) -> Iterator[tuple[str, str]]:
    """Distinct values, each once; what no cell observed is left out, not guessed."""
    seen = [item.identity for item in cells if item.identity]
    first = {item.cell.side.name: item.cell for item in reversed(cells)}
    instruments = dict.fromkeys(cell.instrument for cell in first.values())
    yield "backend", ", ".join(" for ".join(filter(None, (each.backend, each.target))) for each in instruments)
    yield "device", ", ".join(dict.fromkeys(f"{each.device_model} {each.device_uuid}".strip() for each in seen))
    yield "timer", ", ".join(f"{each.timer}, L2 {each.l2}" for each in instruments)
    for name in ("A", "B"):
        yield f"side {name}", switch_text(first[name].side) if name in first else ""
    yield "triton", ", ".join(dict.fromkeys(each.triton for each in seen))
    ended = [item.status for item in cells if item.status and item.status.outcome is not Outcome.SKIPPED]
    starts = sorted(each.started_at for each in ended if each.started_at)
    yield "measured", " to ".join(dict.fromkeys(_minute(each) for each in (*starts[:1], *starts[-1:])))


def _minute(text: str) -> str:
    return f"{text[:16].replace('T', ' ')} UTC"


def _controls(lines: Sequence[OpLine]) -> str:
    """The filter and one chip per verdict; hidden where there is no script to act on them."""
    found = Counter(line.verdict for line in lines)
    chips = "".join(
        f'<button type="button" class="chip v-{verdict.value}" data-verdict="{verdict.value}" aria-pressed="false">'
        f"{verdict.value} <b>{found[verdict]}</b></button>"
        for verdict in Verdict
        if found[verdict]
    )
    box = '<label>Filter <input id="filter" type="search" autocomplete="off" spellcheck="false"></label>'
    tools = (
        '<button type="button" id="open-all">Open shown</button><button type="button" id="close-all">Close all</button>'
    )
    shown = '<span id="shown" role="status"></span>'
    return f'<div class="controls needs-script">{box}{tools}{shown}<div class="chips">{chips}</div></div>'


def _row(line: OpLine, found: OpVerdict) -> str:
    """One op; `data-n` is what its column sorts by, absent where there is no number."""
    estimate, name = found.estimate, escape(line.op)
    opener = f'<button type="button" class="opener" aria-expanded="false">{name}</button>'
    effect = (ABSENT, None, ABSENT, ABSENT) if estimate is None else _effect(found)
    noise = found.noise.a if found.noise else None
    cells = (
        (_chip(line.verdict), None),
        (effect[0], effect[1]),
        (effect[2], None),
        (effect[3], None),
        (ABSENT if line.p_adjusted is None else f"{line.p_adjusted:.2g}", line.p_adjusted),
        (ABSENT if noise is None else f"{signless(noise)} / {signless(found.noise.b if found.noise else None)}", noise),
        (_shapes(found), len(found.shapes)),
        (escape(" ".join(filter(None, (found.gate.verdict, found.gate.stage)))) if found.gate else ABSENT, None),
        (escape("; ".join(str(total) for total in found.metrics if total.rows_changed)) or ABSENT, None),
    )
    columns = "".join(f"<td>{text}</td>" if n is None else f'<td data-n="{n:.6g}">{text}</td>' for text, n in cells)
    why = escape(" ".join(str(reason) for reason in line.reasons))
    added = f' data-added="{why}"' if why else ""
    row = f'<tr data-op="{name}" data-verdict="{line.verdict.value}"{added}>'
    return f'{row}<th scope="row">{opener}</th>{columns}</tr>'


def _effect(found: OpVerdict) -> tuple[str, float, str, str]:
    """Sign and word (of identical code "noise"), the number, the interval, the rounds that agree."""
    estimate = found.estimate
    assert estimate is not None
    low, high = signed(estimate.low), signed(estimate.high)
    interval = ABSENT if estimate.low is None else f"[{low}, {high}]".replace(" %", "")
    way = words(estimate.delta).rpartition(" % ")[2].replace("B as fast as A", "as fast")
    word = "noise" if found.verdict is Verdict.NO_CODE_CHANGE else way
    text = f"{signed(estimate.delta)} <small>{word}</small>"
    return text, percent(estimate.delta), interval, f"{estimate.same_sign}/{estimate.rounds}"


def _shapes(found: OpVerdict) -> str:
    kinds = Counter(shape.verdict.value for shape in found.shapes)
    return "<br>".join(f"{number} {kind}" for kind, number in kinds.most_common(3)) or ABSENT


def _chip(verdict: Verdict) -> str:
    return f'<span class="verdict v-{verdict.value}">{verdict.value}</span>'
