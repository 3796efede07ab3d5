"""A cell that hangs is ended by the limit that it broke, and says where it stood; one that works is left alone."""

import pytest

from harness import store
from harness.records import Outcome
from tests.workflow.project import Project

pytestmark = pytest.mark.fault

IDLE = {"measure": {"rounds": 2, "cell_timeout_s": 120, "no_progress_s": 5}}
TOTAL = {"measure": {"rounds": 2, "cell_timeout_s": 5}}


@pytest.mark.parametrize(
    "limits, reason",
    [(IDLE, "no progress for 5 s (measure.no_progress_s), "), (TOTAL, "no end after ")],
    ids=["idle", "total"],
)
def test_a_cell_that_hangs_times_out_with_its_stack_and_a_plain_re_run_measures_it(tmp_path, limits, reason):
    project = Project(tmp_path, ops=("mm",), extra=limits)
    project.behave({"mm/r1_A": ["hang", "ok"]})
    ended = project.run()
    assert ended.returncode == 1
    hung = project.results / "mm/r1_A"
    found = store.last_attempt(hung)
    assert found.outcome is Outcome.TIMED_OUT and found.rc == 124 and not (hung / "status.json").exists()
    assert found.reason.startswith(reason) and "in linger" in found.reason, found.reason
    log = (hung / "attempts/1/run.log").read_text()
    assert log.index("fake target: mm/r1_A hang") < log.index("most recent call first") < log.index("in linger")
    assert project.run().returncode == 0
    assert len(project.outcomes()) == 5


def test_a_cell_that_takes_longer_than_the_limit_but_gives_signs_of_life_is_measured(tmp_path):
    project = Project(tmp_path, ops=("mm",), extra=IDLE)
    project.behave({"mm/r1_A": ["steps=16"]})
    assert project.run().returncode == 0
    assert project.status("mm/r1_A").elapsed_s > 5
    assert len(project.outcomes()) == 5
