"""Explain: the derivation of a verdict says every number it rests on, and names what is near an unknown name."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.__main__ import main
from harness.explain import Source, UnknownName, explain
from harness.findings import OpLine, Reason, Verdict
from harness.noise import distil
from harness.records import Outcome
from harness.statistics import percent
from harness.verdict import judge_op
from tests.evidence import JUDGE, change, change_status, gate, gated, op_cells, steps

ORDERS = (1, -1, -1, 1, 1, -1)


def wave(phase: float, size: float, rounds: int = 6) -> list[float]:
    """Deviations in per cent that are the same on every machine."""
    return [size * round(math.sin(2.3 * number + phase), 3) for number in range(rounds)]


def op(shapes: int, effect: float, size: float = 0.2, **changes):
    """B `effect` per cent slower on every second shape."""
    a = {f"[{64 + s}]": list(steps(1.0 + s, wave(s, size))) for s in range(shapes)}
    factor = [1 + (effect if s % 2 else 0.0) / 100 for s in range(shapes)]
    b = {f"[{64 + s}]": list(steps((1.0 + s) * factor[s], wave(3 * s + 1, size))) for s in range(shapes)}
    return op_cells(a, b, orders=ORDERS, **changes)


def source(cells, found_gate=None, clocks=None, **more) -> Source:
    found_gate = found_gate or gate()
    on_file = judge_op(cells, found_gate, JUDGE, clocks, noise=more.get("noise"))
    plain = Source("demo", cells, found_gate, JUDGE, clocks or {}, None, on_file)
    return replace(plain, **more)


def clocked(cells):
    return {item.cell.key: 1980.0 - item.cell.round for item in cells if item.cell.round}


def test_the_derivation_of_a_shape_is_the_golden_one(golden):
    cells = op(12, 3.0)
    golden("explain_shape.txt", explain(source(cells, clocks=clocked(cells)), "[65]"))


def test_the_derivation_of_an_op_is_the_golden_one(golden):
    line = OpLine("softmax", Verdict.UNRESOLVED, (Reason("ACROSS_OPS", "SLOWER alone"),), 0.06)
    cells = op(2, 3.0)
    (rows,) = (item.rows for item in cells if item.cell.key.endswith("r2_B"))
    cells = change(cells, "r2_B", rows=(replace(rows[0], timer="direct", l2="flushed"), rows[1]))
    golden("explain_op.txt", explain(source(cells, line=line)))


def test_a_refused_op_says_which_check_refused_it_and_still_shows_its_rows():
    cells = change_status(op(2, 3.0), "r3_B", outcome=Outcome.OP_FAILED, reason="ROW_FAILED: illegal address")
    text = explain(source(cells), "[65]")
    assert "  poisoned: nothing\n  failed: FAILED, which ends it\n\nrows\n" in text
    assert "  CELL_FAILED: softmax/r3_B: ROW_FAILED: illegal address" in text
    assert text.count("timer cuda_graph, l2 warm") == 12
    assert "estimate" not in text


def test_what_the_gate_made_of_the_latencies_is_said():
    text = explain(source(op(2, 3.0), gate("IR_UNKNOWN")))
    assert "-> SIGN_UNSTABLE" in text or "-> SLOWER" in text
    assert "\n  then IR_UNKNOWN: IR_UNKNOWN\n" in text
    gone = explain(source(gated(op(2, 0.0)), gate("NO_CODE_CHANGE")))
    assert "too few rounds for any interval: yes -> UNRESOLVED\n  then NO_CODE_CHANGE: NO_CODE_CHANGE" in gone


def test_a_clock_that_moved_with_the_side_shows_in_the_clock_check():
    cells = op(2, 3.0, size=0.02)
    slow = {item.cell.key: 1980.0 / (1.03 if item.cell.side.name == "B" else 1.0) for item in cells if item.cell.round}
    text = explain(source(cells, clocks=slow), "[65]")
    assert text.startswith("softmax float16 [65] in demo: CLOCK_CONFOUNDED")
    assert "clock check, in cycles (latency x SM clock): SAME" in text
    assert "-> SLOWER\n  then CLOCK: CLOCK_CONFOUNDED" in text


def test_the_margin_in_force_and_its_source_are_said():
    control = op(12, 0.0, size=9.0, declared_aa=True)
    noise = distil("demo_aa", {"softmax": control}, {"softmax": judge_op(control, gate(), JUDGE)}, 0.05)
    text = explain(source(op(12, 3.0), noise=noise), "[65]")
    floor = percent(noise.shape_floor("softmax").p95)
    assert floor > 0.5
    assert f"margin {floor:.2f} % (A/A demo_aa: p95 of 12 shapes of softmax)" in text


def test_a_verdict_on_file_that_is_not_derived_again_is_shouted():
    cells = op(2, 3.0)
    other = judge_op(cells, gate(), replace(JUDGE, margin_pct=9.0))
    assert "THIS DERIVATION DIFFERS" in explain(source(cells, on_file=other))
    assert "no verdict.json" in explain(source(cells, on_file=None))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("[9", "no shape of softmax '[9'; near: softmax float16 [64]"),
        ("[6", "shape of softmax '[6' is not unique: softmax float16 [64], softmax float16 [65]"),
    ],
)
def test_an_unknown_or_ambiguous_shape_names_near_ones(name, message):
    with pytest.raises(UnknownName) as error:
        explain(source(op(2, 3.0)), name)
    assert str(error.value).startswith(message)


def test_a_campaign_that_is_not_there_is_one_line(tmp_path, capsys):
    assert main(["explain", str(tmp_path), "mm"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
