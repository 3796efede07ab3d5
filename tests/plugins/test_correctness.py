"""correctness: in round 1 every row's result is held against the reference's, and no other cell pays for it."""

import dataclasses
import shutil

import pytest

from harness.plugins import correctness, session
from tests.plugins.target import ON_FAKE_DEVICE, REPOSITORY, make_cell, run

ROOT = str(REPOSITORY / "tests/fixtures/plugins/checked")
CELL = dataclasses.replace(make_cell(**ON_FAKE_DEVICE, autotune="first"), pytest_args=("-s",))
CELL = dataclasses.replace(CELL, provider=dataclasses.replace(CELL.provider, root=ROOT))


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Round 1 of every benchmark of the fixture."""
    return run(tmp_path_factory.mktemp("checked") / "run", "test", CELL)


@pytest.mark.slow
def test_the_cell_counts_what_agrees_differs_and_was_not_checked_with_the_reasons(checked):
    found = checked.event("RESULT_CHECKED").detail
    assert (found["agree"], found["differ"], found["unchecked"]) == ("3", "2", "9"), checked.log
    for reason in (
        "it works in place (2)",
        "two calls of the reference differ (1)",
        "it writes its arguments (1)",
        "the result holds float, no tensor (1)",
        "the reference failed: NotImplementedError: not for this type (1)",
        "its benchmark did not call do_bench (1)",
        "its benchmark has a run of its own (1)",
        "its row failed (1)",
    ):
        assert reason in found["why"]


@pytest.mark.slow
def test_a_row_that_differs_is_named_with_its_errors(checked):
    wrong, shape = (event for event in checked.events if event.code == "RESULT_DIFFERS")
    assert wrong.row == "wrong float32 [[64]]"
    assert (wrong.detail["wrong"], wrong.detail["max_abs"]) == ("1 of 64", "0.5")
    assert shape.row == "wrong_shape float32 [[64]]"
    assert shape.detail == {"wrong": "64 of 64", "max_abs": "inf", "max_rel": "inf"}
    assert "\nRESULT_DIFFERS wrong=" in checked.log


@pytest.mark.slow
def test_every_row_is_timed_as_without_the_check(tmp_path, checked):
    later = run(tmp_path / "run", "test", dataclasses.replace(CELL, round=2))
    assert [row.key for row in later.rows] == [row.key for row in checked.rows]
    assert [row.reason for row in later.rows] == [row.reason for row in checked.rows]
    assert not {"RESULT_CHECKED", "RESULT_DIFFERS"} & set(later.codes)
    assert "reference called 2 times" in checked.log
    assert "reference called 0 times" in later.log


@pytest.mark.slow
def test_replaying_on_the_fixture_device_nothing_has_values_to_compare(device_replay):
    found = device_replay.event("RESULT_CHECKED").detail
    assert (found["agree"], found["differ"]) == ("0", "0") and int(found["unchecked"]) == len(device_replay.rows)


@pytest.mark.parametrize(
    ("changes", "applies"),
    [
        ({"autotune": "replay", **ON_FAKE_DEVICE}, True),
        ({"autotune": "first", **ON_FAKE_DEVICE}, True),
        ({"autotune": "record", "round": 0, **ON_FAKE_DEVICE}, False),
        ({"autotune": "replay", "round": 2, **ON_FAKE_DEVICE}, False),
        ({"autotune": "replay"}, False),  # backend aot: nothing is computed
    ],
)
def test_round_1_of_each_side_checks_and_nothing_else_does(tmp_path, monkeypatch, changes, applies):
    found = session.Session(make_cell(**changes), tmp_path, started_cold=True)
    monkeypatch.setattr(session, "current", lambda: found)
    assert correctness.applies() is applies


def test_a_result_too_large_to_keep_is_not_kept(monkeypatch):
    import torch

    monkeypatch.setattr(correctness, "MAX_ELEMENTS", 10)
    with pytest.raises(correctness.Incomparable, match="the result has more than 10 elements"):
        correctness._kept(lambda taken: taken.take(lambda: torch.zeros(11)))


def test_a_row_stands_when_one_call_more_fails(tmp_path, monkeypatch):
    found = session.Session(make_cell(), tmp_path, started_cold=True)
    monkeypatch.setattr(session, "current", lambda: found)
    taken = correctness.Taken(reference=False)
    taken.keep(lambda: 1 / 0)
    assert taken.why == "ZeroDivisionError: division by zero"


BUILTIN_OPS = """
import torch

from .base import UnaryPointwiseBenchmark


class OnCpu(UnaryPointwiseBenchmark):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.device = "cpu"


def test_right():
    OnCpu("right", torch.exp, lambda x: torch.exp(x.double()).to(x.dtype)).run()


def test_wrong():
    OnCpu("wrong", torch.exp, torch.sinh).run()
"""


@pytest.mark.slow
def test_the_builtin_providers_own_protocol_is_checked_too(tmp_path):
    root, shapes = tmp_path / "provider", '{"Benchmark": {"shapes": [[1000], [64, 64]]}}'
    shutil.copytree(REPOSITORY / "harness/providers/builtin/benchmark", root / "benchmark")
    (root / "benchmark/test_ops.py").write_text(BUILTIN_OPS)
    (root / "shapes.json").write_text(shapes)
    arguments = ("--shape_file=shapes.json", "--dtypes=float16", "--dtypes=bfloat16")
    provider = dataclasses.replace(CELL.provider, root=str(root))
    ran = run(tmp_path / "run", "test", dataclasses.replace(CELL, provider=provider, pytest_args=arguments))
    assert ran.rc == 0, ran.log
    assert ran.event("RESULT_CHECKED").detail == {"agree": "4", "differ": "4", "unchecked": "0"}
    assert {event.row.split()[0] for event in ran.events if event.code == "RESULT_DIFFERS"} == {"wrong"}
    assert {(row.op, row.occurrence) for row in ran.rows} == {("right", 0), ("wrong", 0)}, "the reference is no row"
