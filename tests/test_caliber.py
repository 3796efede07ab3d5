"""Caliber: what may be compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness import caliber
from harness.caliber import Mismatch, compare
from harness.records import Outcome, Role, identity_fields
from tests.evidence import change, change_identity, change_status, op_cells

CELLS = op_cells({"[8]": [1.0, 1.0]}, {"[8]": [1.1, 1.1]})


def test_cells_that_differ_on_the_switch_alone_are_comparable():
    assert compare(CELLS) == ()


@pytest.mark.parametrize("name", [name for name in identity_fields(Role.COMPARED) if name != "env"])
def test_every_compared_field_must_be_equal_in_every_cell(name):
    old = getattr(CELLS[1].identity, name)
    other = (*old, "other") if isinstance(old, tuple) else old + type(old)(1)
    (found,) = compare(change_identity(CELLS, "r2_B", **{name: other}))
    assert found.axis == name
    assert sorted(len(cells) for cells in found.values.values()) == [1, 3]
    assert ("softmax/r2_B",) in found.values.values()


def test_a_mismatch_prints_axis_values_and_cells_on_one_line():
    (found,) = compare(change_identity(CELLS, "r2_B", timer="direct"))
    assert str(found) == (
        "!!! [caliber] timer: cuda_graph -> softmax/r1_A, softmax/r1_B, softmax/r2_A; direct -> softmax/r2_B"
    )


def test_a_mapping_is_compared_per_key_and_names_the_key():
    cells = change_identity(CELLS, "r1_A", env={"CUDA_VISIBLE_DEVICES": "0", "SAME": "1"})
    for key in ("r1_B", "r2_A", "r2_B"):
        cells = change_identity(cells, key, env={"SAME": "1"})
    (found,) = compare(cells)
    assert found.axis == "env.CUDA_VISIBLE_DEVICES"
    assert set(found.values) == {"0", "unset"}


def test_unset_empty_and_the_word_unset_are_three_values():
    cells = change_identity(CELLS, "r1_A", env={"X": ""})
    cells = change_identity(cells, "r1_B", env={"X": "unset"})
    (found,) = compare(cells)
    assert set(found.values) == {"unset", '""', '"unset"'}


def test_an_axis_must_not_change_between_the_rounds_of_one_side():
    (found,) = compare(change_identity(CELLS, "r2_B", triton_digest="sha256:rebuilt"))
    assert found.axis == "triton_digest within B"
    assert found.values == {"sha256:t": ("softmax/r1_B",), "sha256:rebuilt": ("softmax/r2_B",)}


def test_sides_that_differ_nowhere_are_refused_by_name():
    cells = CELLS
    for key in ("r1_B", "r2_B"):
        cells = change_identity(cells, key, switch={"X": None})
    (found,) = compare(cells)
    assert found == Mismatch("switch", {caliber.NO_SWITCH: tuple(item.cell.key for item in CELLS[1:])})


def test_a_declared_aa_may_have_equal_sides():
    cells = tuple(replace(item, cell=replace(item.cell, declared_aa=True)) for item in CELLS)
    for key in ("r1_B", "r2_B"):
        cells = change_identity(cells, key, switch={"X": None})
    assert compare(cells) == ()


def test_a_compiler_build_alone_is_a_switch():
    cells = CELLS
    for key in ("r1_B", "r2_B"):
        cells = change_identity(cells, key, switch={"X": None}, triton_digest="sha256:other")
    assert compare(cells) == ()


def test_evidence_fields_are_never_compared():
    assert compare(change_identity(CELLS, "r1_A", host="elsewhere", pid=7, started_at="", cuda_visible="3")) == ()


def test_a_measured_cell_without_identity_is_refused():
    assert compare(change(CELLS, "r1_A", identity=None))[0] == Mismatch("identity", {"missing": ("softmax/r1_A",)})


def test_round_zero_and_unmeasured_cells_are_not_compared():
    cells = change(CELLS, "r0_A", identity=replace(CELLS[1].identity, timer="direct"))
    cells = change_identity(cells, "r2_B", timer="direct")
    cells = change_status(cells, "r2_B", outcome=Outcome.OP_FAILED)
    assert compare(cells) == ()


def test_the_table_shows_both_sides_of_every_field():
    table = {line.axis: line for line in caliber.table(change_identity(CELLS, "r2_B", timer="direct"))}
    assert (table["switch.X"].a, table["switch.X"].b, table["switch.X"].state) == ("unset", "1", "axis")
    assert (table["timer"].b, table["timer"].state) == ("cuda_graph | direct", "DIFFERS")
    assert table["level"].state == "equal"
    assert table["triton"].state == "equal"
    assert "host" not in table


def test_the_table_of_a_single_side_compares_nothing():
    assert {line.state for line in caliber.table([item for item in CELLS if item.cell.side.name == "A"])} == {"unseen"}
