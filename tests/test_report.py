"""The report: coverage first, every orphan and reason named, ten lines for the terminal."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from harness.findings import Verdict
from harness.records import Event, Marker, Outcome
from harness.report import COLUMNS, CampaignReport, assemble, markdown, tsv
from harness.summary import summary
from harness.verdict import judge_op
from tests.evidence import (
    AOT,
    JUDGE,
    change,
    change_identity,
    change_status,
    each_row,
    fallen,
    gate,
    gated,
    op_cells,
    row,
    side_rows,
    steps,
)

NOISE = (0.05, -0.04, 0.02, -0.05, 0.03, -0.01)


def op(name: str, effect: float = 0.0, scale: float = 1.0, **changes):
    """Two shapes in six rounds."""
    a = {"[8]": list(steps(1.0, [scale * n for n in NOISE])), "[16,16]": list(steps(2.0, NOISE))}
    b = {shape: list(steps((1 + effect / 100) * ms[0], [scale * n for n in NOISE[::-1]])) for shape, ms in a.items()}
    return op_cells(a, b, name, **changes)


def metric_cells(name: str, effect: float):
    cells = each_row(op(name, effect), metrics={"convert_layout.ttgir": 2, "registers": 40})
    return side_rows(cells, "B", metrics={"convert_layout.ttgir": 3, "registers": 40})


def rows_of(cells, key):
    (found,) = (item.rows for item in cells if item.cell.key.endswith(f"/{key}"))
    return found


def untidy(name: str):
    """An orphan, a row of another timer, an invalid row, a cell run again, a fallback."""
    cells = op(name, 2.0)
    first, second = rows_of(cells, "r2_B")
    orphan, bad = row(3.0, "[32]", name), row(None, "[64]", name, reason="TIMER_INVALID: latency 0.0")
    cells = change(cells, "r2_B", rows=(replace(first, timer="direct", l2="flushed"), second, orphan, bad))
    cells = change_status(cells, "r2_B", rows_expected=4)
    cells = change_status(cells, "r3_A", started_at="2026-01-01T05:00:00+00:00", seq=40)
    return fallen(cells, "r2_B", Marker.BENCHMARK_DIRECT_NO_CUDAGRAPH)


def failing(name: str):
    cells = change_status(op(name), "r1_B", outcome=Outcome.OP_FAILED, reason="ROW_FAILED: illegal | address")
    for item in cells[3:]:
        key = item.cell.key.split("/")[1]
        cells = change_status(cells, key, outcome=Outcome.SKIPPED, reason=f"{name}/r1_B failed")
        cells = change(cells, key, rows=(), identity=None)
    return cells


def build(cells_of, gates) -> CampaignReport:
    ops = {name: judge_op(cells, gates.get(name, gate(op=name)), JUDGE) for name, cells in cells_of.items()}
    return assemble("demo", cells_of, ops, JUDGE)


@pytest.fixture(scope="module")
def everything() -> CampaignReport:
    """One op for each thing a report has to say."""
    cells = {
        "softmax": metric_cells("softmax", 3.1),
        "gelu": op("gelu", -2.0),
        "add": op("add"),
        "topk": op_cells({"[8]": [1.0] * 6}, {"[8]": [1.05, 0.96, 1.02, 1.01, 0.95, 1.03]}, "topk"),
        "exp": gated(op("exp", 0.2)),
        "pad": untidy("pad"),
        "mm": change(op("mm"), "r5_A", status=None),
        "sort": failing("sort"),
        "conv": change_identity(op("conv"), "r2_A", timer="direct"),
    }
    return build(cells, {"exp": gate("NO_CODE_CHANGE", "exp"), "mm": gate("IR_UNKNOWN", "mm"), "sort": None})


@pytest.fixture(scope="module")
def compiled() -> CampaignReport:
    cells = {name: op(name, effect, instrument=AOT, timer="compile") for name, effect in (("add", 0.0), ("mm", 4.0))}
    return build(cells, {})


def test_the_markdown_report_is_the_golden_one(everything, golden):
    golden("report.md", markdown(everything))


def test_the_table_is_the_golden_one(everything, golden):
    golden("report.tsv", tsv(everything))


def test_the_summary_is_the_golden_one(everything, golden):
    golden("report_summary.txt", summary(everything, "results/demo/report.md"))


def test_a_small_summary_has_a_line_per_op(compiled, golden):
    golden("report_summary_few.txt", summary(compiled, "results/demo/report.md"))


def test_coverage_comes_before_any_number(everything):
    headings = [line for line in markdown(everything).splitlines() if line.startswith("## ")]
    assert headings[:4] == ["## Coverage", "## Values", "## Caliber", "## Verdicts"]


def test_the_report_shouts_what_caliber_refused(everything):
    assert "!!! [caliber] timer: " in markdown(everything)


def test_compile_latency_is_never_called_device_latency(compiled, everything):
    assert "**compile latency** (backend aot for cuda:90, timer compile" in markdown(compiled)
    assert "device latency" not in markdown(compiled)
    assert "**device latency** (backend cuda, timer cuda_graph, L2 warm)" in markdown(everything)


def test_rows_expected_and_got_are_both_printed():
    cells = {"mm": change_status(op("mm"), "r2_A", rows_expected=5), "add": op("add")}
    text = markdown(build(cells, {}))
    assert "| mm | 13 of 13 | 0 | 0 | 0 | 24 / 27 |" in text
    assert "| add | 13 of 13 | 0 | 0 | 0 | 24 / 24 |" in text


def test_what_every_healthy_cell_says_is_no_event_of_the_report():
    cells = {"add": change(op("add"), "r1_A", events=(Event("PHASES", "", {}), Event("ODD", "", {})))}
    text = markdown(build(cells, {}))
    assert "ODD" in text
    assert "PHASES" not in text


def test_every_line_of_the_table_has_every_column(everything):
    head, *lines = tsv(everything).splitlines()
    assert head == "# B vs A latency, - = B faster"
    found = list(csv.DictReader(io.StringIO("\n".join(lines)), delimiter="\t"))
    assert tuple(found[0]) == COLUMNS
    assert all(None not in line and None not in line.values() for line in found)
    assert [line["op"] for line in found if not line["shape"]] == list(everything.ops)


def test_a_withheld_op_has_no_number_anywhere(everything):
    lines = csv.DictReader(io.StringIO(tsv(everything).split("\n", 1)[1]), delimiter="\t")
    for line in lines:
        if line["op"] in ("mm", "sort", "conv"):
            assert (line["delta_pct"], line["p"], line["a_ms"]) == ("", "", "")


AT = "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize("number", [1, 6, 7, 40])
def test_the_summary_never_exceeds_ten_lines(number):
    report = build({f"op{index}": op(f"op{index}", float(index % 3)) for index in range(number)}, {})
    assert len(summary(report, "results/demo/report.md").splitlines()) <= 10


def test_the_summary_tells_what_the_devices_were_held_for_within_its_ten_lines():
    cells = {f"op{index}": op(f"op{index}", float(index % 3)) for index in range(40)}
    told = {"phases_s": {"lease": 10.0, "time": 8.0}, "started_at": AT, "ended_at": AT}
    held = {
        name: tuple(replace(item, status=replace(item.status, **told)) for item in own) for name, own in cells.items()
    }
    text = summary(build(held, {}), "report.md")
    assert "leased 5200 s (compile 0 %, tune 0 %, time 80 %, check 0 %, other 20 %)" in text
    assert len(text.splitlines()) <= 10


def test_the_summary_of_all_verdicts_at_once_still_fits(everything):
    lines = tuple(replace(everything.verdict.ops[0], op=verdict.value, verdict=verdict) for verdict in Verdict)
    text = summary(replace(everything, verdict=replace(everything.verdict, ops=lines)), "report.md")
    assert len(text.splitlines()) == 10
    assert all(f"{verdict.value} 1" in text for verdict in Verdict)


def test_a_campaign_without_ops_reports_that_nothing_ran():
    empty = assemble("demo", {}, {}, JUDGE)
    assert "0 of 0 cells ended" in markdown(empty)
    assert summary(empty, "x").startswith("demo: 0/0 cells ended")
    assert tsv(empty).count("\n") == 2
