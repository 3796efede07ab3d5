"""store: where the files of a campaign lie, and the table derived from them."""

import csv
import io

import pytest

from harness import codec, store
from harness.records import Outcome, Plan, Planned, Side, Status
from tests import evidence as build


def test_a_directory_without_a_campaign_is_named(tmp_path):
    with pytest.raises(store.StoreError, match="no such campaign here; start it with snakemake"):
        store.read_plan(tmp_path)


def test_attempts_are_in_number_order(tmp_path):
    for name in ("10", "2", "1", "notes"):
        (tmp_path / "attempts" / name).mkdir(parents=True)
    assert [path.name for path in store.attempts(tmp_path)] == ["1", "2", "10"]


@pytest.mark.parametrize(
    ("side", "text"),
    [
        (Side("A", "py", (), {}), "(none)"),
        (Side("A", "py", (), {"X": None}), "-X"),
        (Side("B", "py", ("/lib",), {"X": "1"}), "X=1 +/lib"),
    ],
)
def test_a_switch_reads_well_in_a_table(side, text):
    assert store.switch_text(side) == text


def test_the_status_table_has_a_row_for_every_planned_cell(tmp_path):
    cells = [build.cell(op="mm", side=side, campaign="c") for side in "AB"]
    plan = Plan("c", ("0",), tuple(Planned(cell.key, n, 1, 0) for n, cell in enumerate(cells)))
    codec.write(tmp_path / "plan.json", plan)
    for cell in cells:
        codec.write(tmp_path / cell.key / "cell.json", cell)
    ended = Status("c", "mm", 1, "A", Outcome.OP_FAILED, 1, "two\nlines", 7.25, 2, 1, 2,
                   {"AUTOTUNE_REPLAY_FALLBACK": 3}, 5, 1, "2026-01-01", "", "GPU-1", {}, {})  # fmt: skip
    codec.write(tmp_path / cells[0].key / "status.json", ended)
    text = store.write_status_table(tmp_path).read_text()
    first, second = csv.DictReader(io.StringIO(text), delimiter="\t")
    assert first["outcome"] == "op_failed" and first["AUTOTUNE_REPLAY_FALLBACK"] == "3"
    assert first["reason"] == "two lines" and first["elapsed_s"] == "7.250" and first["device"] == "GPU-1"
    assert second["outcome"] == "missing" and second["rc"] == ""
    assert tuple(first) == store.STATUS_COLUMNS


def test_the_number_of_cells_is_known_without_reading_the_plan(tmp_path):
    """A cell that parses the 2 MB of a plan of 20 000 for its line `[n/20000]` takes longer than many a benchmark."""
    assert store.planned_cells(tmp_path) == 0
    (tmp_path / "plan.cells").write_text("20000\n")
    assert store.planned_cells(tmp_path) == 20000
