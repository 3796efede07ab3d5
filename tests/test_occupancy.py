from dataclasses import replace

import pytest

from harness import occupancy, occupancy_section
from harness.records import Outcome
from tests import evidence

PHASES = {"lease": 20.0, "target": 29.0, "import": 8.0, "compile": 1.0, "tune": 1.0, "time": 12.0, "check": 4.0}


def ended(round_=1, side="A", start="00:00", end="00:22", device="GPU-1", outcome=Outcome.MEASURED, **phases):
    plain = evidence.status(evidence.cell(round_=round_, side=side), outcome)
    at = {"started_at": f"2026-01-01T00:{start}+00:00", "ended_at": f"2026-01-01T00:{end}+00:00"}
    return replace(plain, **at, device=device, phases_s=phases or PHASES)


def test_the_phases_and_the_rest_are_the_whole_lease():
    found = occupancy.use([ended(), ended(side="B", lease=10.0, time=7.0)])
    assert (found.cells, found.import_s, found.lease_s) == (2, 8.0, 30.0), "imports are in no lease"
    assert found.phases_s == {"compile": 1.0, "tune": 1.0, "time": 19.0, "check": 4.0, "other": 5.0}
    assert sum(found.share(name) for name in occupancy.PHASES) == pytest.approx(1)


def test_a_status_that_tells_no_lease_is_not_counted():
    old = ended(target=19.0, time=12.0)
    assert occupancy.use([old]).cells == 0 and occupancy.use([old]).share("time") == 0.0
    assert occupancy.held([old]) == () and occupancy.line([old]) == ""
    assert occupancy.use([old, ended()]).lease_s == 20.0


def test_a_phase_that_claims_more_than_the_lease_leaves_no_negative_rest():
    assert occupancy.use([ended(lease=1.0, time=1.5)]).phases_s["other"] == 0.0


def test_idle_is_what_lies_between_the_first_start_and_the_last_end_without_a_lease():
    cells = [ended(start="01:00", end="01:25"), ended(start="00:10", end="00:32"), ended(device="GPU-2")]
    first, second = sorted(occupancy.held(cells), key=lambda one: one.device)
    assert (first.device, first.wall_s, first.idle_s, first.longest_gap_s) == ("GPU-1", 75.0, 35.0, 28.0)
    assert (second.device, second.idle_s, second.longest_gap_s) == ("GPU-2", 2.0, 0.0)


def test_the_terminal_gets_one_line():
    line = occupancy.line([ended(), ended(start="01:00", end="01:30")])
    assert line == "devices: leased 40 s (compile 5 %, tune 5 %, time 60 %, check 20 %, other 10 %), idle 50 s"


def test_the_report_has_a_section_when_leases_are_known():
    cells = {"softmax": evidence.op_cells({"[[4]]": [1.0]}, {"[[4]]": [1.0]})}
    assert occupancy_section.section(cells) == ""
    times = [f"2026-01-01T00:{minute:02d}:00+00:00" for minute in range(6)]
    found = tuple(
        replace(item, status=replace(item.status, phases_s=PHASES, started_at=times[index], ended_at=times[index]))
        for index, item in enumerate(cells["softmax"])
    )
    text = occupancy_section.section({"softmax": found})
    assert text.startswith("## Occupancy\n\n")
    assert "| recorded | 1 | 8.0 | 20.0 | 5.0 | 5.0 | 60.0 | 20.0 | 10.0 |" in text
    assert "| measured | 2 | 16.0 | 40.0 | 5.0 | 5.0 | 60.0 | 20.0 | 10.0 |" in text
    assert "| all | 3 | 24.0 | 60.0 |" in text
    assert "| GPU-1 | 60.0 | 120.0 | 60.0 | 60.0 |" in text
    assert "op, measured" not in text, "one op would only repeat the first table"
    both = occupancy_section.section({"softmax": found, "add": cells["softmax"]})
    assert "| softmax | 2 | 16.0 | 40.0 | 5.0 |" in both and "| add | 0 | 0.0 | 0.0 | - |" in both
