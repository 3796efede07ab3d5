"""judging: what is derived from the files of cells that have ended."""

import dataclasses

from harness import codec, judging
from harness.records import CellEvidence, Outcome, Status
from tests import evidence as build
from tests import finished


def measured(tmp_path, samples: list[tuple[int, int]]):
    """One measured cell of 20 s whose telemetry has (SM clock, utilization) once a second."""
    cell = build.cell()
    path = tmp_path / cell.key / "attempts" / "1" / "telemetry.csv"
    lines = [f"{second}.0,0,u,{clock},3201,40,500,{busy},none" for second, (clock, busy) in enumerate(samples)]
    header = "time_s,index,uuid,sm_clock_mhz,mem_clock_mhz,temp_c,power_w,util_pct,throttle"
    codec.write_text(path, "\n".join([header, *lines]) + "\n")
    status = Status(
        "c", cell.op, 1, "A", Outcome.MEASURED, 0, "", 20.0, 1, 0, 1, {}, 1, 1, "", "", "u", {}, {}
    )  # fmt: skip
    return CellEvidence(cell, status, None, None, (), ())


def test_a_cells_clock_is_the_one_under_load(tmp_path):
    item = measured(tmp_path, [(345, 0)] * 8 + [(1900, 90)] * 12)
    assert judging.clocks(tmp_path, (item,)) == {item.cell.key: 1900.0}


def test_few_samples_under_load_say_nothing_about_the_clock(tmp_path):
    assert judging.clocks(tmp_path, (measured(tmp_path, [(345, 0)] * 15 + [(1900, 90)] * 5),)) == {}


def test_telemetry_that_covers_half_the_cell_says_nothing_about_the_clock(tmp_path):
    assert judging.clocks(tmp_path, (measured(tmp_path, [(1900, 90)] * 10),)) == {}


def test_a_cell_that_was_not_measured_has_no_clock(tmp_path):
    item = measured(tmp_path, [(1900, 90)] * 20)
    assert item.status is not None
    skipped = dataclasses.replace(item, status=dataclasses.replace(item.status, outcome=Outcome.SKIPPED))
    assert judging.clocks(tmp_path, (skipped,)) == {}


def test_a_gate_that_no_later_cell_is_left_to_ask_for_is_asked_here(tmp_path):
    """Round 1 measured again, after rounds 2..6: without a gate the verdict would not know whether code changed."""
    directory = finished.write(tmp_path, {"mm": finished.op_cells("mm", 5.0)})
    asked = (directory / "mm/gate.json").read_bytes()
    (directory / "mm/gate.json").unlink()
    assert judging.judge(directory, "mm").gate.verdict == "CODE_CHANGED"
    assert (directory / "mm/gate.json").read_bytes() == asked


def test_a_gate_is_not_asked_for_an_op_that_has_not_measured_every_round(tmp_path):
    cells = build.change(finished.op_cells("mm", 5.0), "r1_B", status=None)
    directory = finished.write(tmp_path, {"mm": cells})
    (directory / "mm/gate.json").unlink()
    assert judging.judge(directory, "mm").gate is None
    assert not (directory / "mm/gate.json").exists()
