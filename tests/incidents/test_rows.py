"""Incidents of lost, failed and unplanned rows, from the target to the verdict (facts: triton-flaggems 2.5, 2.7, 6)."""

from dataclasses import replace

from harness.records import Event, Judge, Outcome
from harness.verdict import Verdict, judge_op
from tests.evidence import change, change_status, gate, op_cells, row

JUDGE = Judge(margin_pct=0.5, q=0.05, allow_no_ir_diff=False, allow_caliber_mismatch=False)
A, B = [1.0, 1.001, 0.999, 1.0, 1.001, 0.999], [1.05, 1.051, 1.049, 1.05, 1.051, 1.049]
OOM = "OOM: OutOfMemoryError: CUDA out of memory"


def two_shapes():
    return op_cells({"[[64]]": A, "[[4096]]": A}, {"[[64]]": B, "[[4096]]": B})


def without_number(cells, side, shape, reason=OOM):
    """`cells` in which one side never got a number for `shape`."""

    def lost(own):
        return replace(own, value=None, reason=reason) if own.shape == shape else own

    return tuple(
        replace(item, rows=tuple(map(lost, item.rows))) if item.cell.side.name == side else item for item in cells
    )


def test_a_shape_that_ran_out_of_memory_on_one_side_is_no_number_and_says_why():
    """Stored as 0.0 it was the fastest (tritonbench#214); left out silently it was a smaller mean (golang/go#19565)."""
    found = judge_op(without_number(two_shapes(), "B", "[[4096]]"), gate(), JUDGE)
    assert found.verdict is Verdict.SLOWER
    (lost,) = (shape for shape in found.shapes if shape.key.shape == "[[4096]]")
    assert lost.verdict is Verdict.INCOMPLETE and OOM in lost.reasons[0].message and lost.estimate is None
    assert "SHAPES_LEFT_OUT" in {reason.code for reason in found.reasons}


def test_an_op_whose_every_shape_failed_somewhere_has_no_verdict_in_numbers():
    cells = without_number(without_number(two_shapes(), "B", "[[4096]]"), "A", "[[64]]")
    found = judge_op(cells, gate(), JUDGE)
    assert found.verdict is Verdict.INCOMPLETE and found.estimate is None


def test_a_cell_of_which_every_row_failed_fails_the_op_with_the_word():
    cells = change_status(two_shapes(), "r3_B", outcome=Outcome.OP_FAILED, reason=f"OOM: mm float16 [[64]]: {OOM}")
    found = judge_op(cells, gate(), JUDGE)
    assert found.verdict is Verdict.FAILED and "r3_B: OOM: mm" in found.reasons[0].message


def test_a_shape_that_failed_is_one_row_however_many_it_would_have_made():
    """Several inputs of one shape, or several candidates, are several rows; failing, they are one."""
    cells = two_shapes()
    (broken,) = (item for item in cells if item.cell.key.endswith("/r3_B"))
    fewer = change(cells, "r3_B", rows=(broken.rows[0], row(None, "[4096]", reason=OOM)))
    found = judge_op(change_status(fewer, "r3_B", rows_expected=3), gate(), JUDGE)
    assert "ROWS_MISSING" not in {reason.code for reason in found.reasons} and found.verdict is Verdict.SLOWER


def test_rows_that_are_missing_without_a_failure_are_missing():
    found = judge_op(change_status(two_shapes(), "r3_B", rows_expected=3), gate(), JUDGE)
    assert found.verdict is Verdict.INCOMPLETE and found.reasons[0].code == "ROWS_MISSING"


def test_a_data_type_that_ended_before_its_time_is_not_excused_by_the_row_that_failed():
    ended = Event(
        "DTYPE_ENDED", "", {"op": "softmax", "dtype": "float16", "why": "X.get_input_iter cannot be taken up"}
    )
    cells = change(without_number(two_shapes(), "B", "[[4096]]"), "r3_B", events=(ended,))
    found = judge_op(change_status(cells, "r3_B", rows_expected=5), gate(), JUDGE)
    assert found.verdict is Verdict.INCOMPLETE and found.reasons[0].code == "ROWS_MISSING"


def test_shapes_that_are_not_the_planned_ones_are_a_note_on_the_verdict():
    """Some classes of FlagGems have shapes of their own, and the shape file of the campaign was not used at all."""
    detail = {"op": "softmax", "planned": "12", "ran": "2", "common": "0", "why": "Softmax.set_shapes decides"}
    event = Event("SHAPES_NOT_AS_PLANNED", "", detail)
    cells = tuple(replace(item, events=(event,)) for item in two_shapes())
    found = judge_op(cells, gate(), JUDGE)
    assert found.verdict is Verdict.SLOWER
    (note,) = (reason for reason in found.reasons if reason.code == "SHAPES_NOT_AS_PLANNED")
    assert note.message == (
        "softmax/r1_A and 11 more: op=softmax planned=12 ran=2 common=0: Softmax.set_shapes decides"
    )
