"""notes: what qualifies a verdict without deciding it."""

from __future__ import annotations

import pytest

from harness.findings import OpVerdict, codes
from harness.records import Event
from harness.verdict import Verdict, judge_op
from tests.evidence import JUDGE, change, gate, gated, op_cells

CELLS = op_cells({"[8]": [1.0, 1.001, 1.002, 0.999, 1.0, 1.001]}, {"[8]": [1.1, 1.101, 1.1, 1.099, 1.102, 1.1]})
DETAIL = {"wrong": "1 of 64", "max_abs": "0.5", "max_rel": "0.1"}


def differing(key: str = "r1_B") -> OpVerdict:
    events = tuple(Event("RESULT_DIFFERS", row, DETAIL) for row in ("softmax float16 [8]", "softmax float16 [9]"))
    return judge_op(change(CELLS, key, events=events), gate(), JUDGE)


def test_a_side_that_computes_something_else_is_said_with_the_verdict():
    found = differing()
    assert found.verdict is Verdict.SLOWER, "a note qualifies, it does not decide"
    text = "softmax/r1_B: 2 row(s) unlike torch's result; softmax float16 [8]: wrong=1 of 64 max_abs=0.5 max_rel=0.1"
    assert f"RESULT_DIFFERS: {text}" in map(str, found.reasons)


def test_sides_that_compute_what_torch_does_are_not_spoken_of():
    assert "RESULT_DIFFERS" not in codes(judge_op(CELLS, gate(), JUDGE).reasons)


@pytest.mark.parametrize("skipped", [False, True])
def test_identical_code_does_not_hide_that_it_is_wrong(skipped):
    cells = change(CELLS, "r1_A", events=(Event("RESULT_DIFFERS", "softmax float16 [8]", DETAIL),))
    found = judge_op(gated(cells) if skipped else cells, gate("NO_CODE_CHANGE"), JUDGE)
    assert found.verdict is Verdict.NO_CODE_CHANGE
    assert "RESULT_DIFFERS" in codes(found.reasons)
