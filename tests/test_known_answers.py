"""Known answers: public data of other projects, read here and judged as campaigns. See the README beside the data."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from harness.findings import codes
from harness.statistics import percent
from harness.verdict import Verdict, judge_op
from tests.evidence import JUDGE, change_identity, change_status, each_row, gate, op_cells, side_rows

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"public benchmark data not found at {DATA}")

LINE = re.compile(r"^Benchmark(\S+)\s+\d+\s+(.*)$")
Samples = dict[str, list[float]]


def go_samples(text: str, unit: str = "ns/op") -> Samples:
    """Benchmark name -> its repetitions in `unit`."""
    found: Samples = {}
    for name, values in (match.groups() for match in map(LINE.match, text.splitlines()) if match):
        pairs = values.split()
        for number, its_unit in zip(pairs[::2], pairs[1::2], strict=True):
            if its_unit == unit:
                found.setdefault(name, []).append(float(number))
    return found


def go_file(name: str, unit: str = "ns/op") -> Samples:
    return go_samples((DATA / "benchstat" / name).read_text(), unit)


def go_halves(name: str, unit: str = "ns/op") -> tuple[Samples, Samples]:
    """A file that holds both sides, apart by its `note:` key."""
    before, after = (DATA / "benchstat" / name).read_text().split("note: after")
    return go_samples(before, unit), go_samples(after, unit)


def pyperf_file(name: str) -> Samples:
    """Benchmark name -> one value per process: the median of its values, in ms."""
    suite = json.loads((DATA / "pyperf" / name).read_text())
    return {
        each["metadata"]["name"]: [1e3 * median(run["values"]) for run in each["runs"] if "values" in run]
        for each in suite["benchmarks"]
    }


def judged(a: Mapping[str, Sequence[float]], b: Mapping[str, Sequence[float]]):
    return judge_op(op_cells(a, b), gate(), JUDGE)


def by_shape(found) -> dict[str, object]:
    return {shape.key.shape: shape for shape in found.shapes}


def test_every_public_file_has_its_known_answer_here():
    """A file added to the data and to no test would be an answer nobody checks."""
    text = Path(__file__).read_text(encoding="utf-8")
    files = {path.name for path in DATA.rglob("*") if path.is_file()} - {"README.md"}
    assert len(files) >= 12
    assert not {name for name in files if f'"{name}"' not in text}


def test_go_encode_json_is_17_percent_faster_and_gob_is_not_significant():
    found = judged(go_file("old.txt"), go_file("new.txt"))
    shapes = by_shape(found)
    json_, gob = shapes["Encode/format=json-48"], shapes["Encode/format=gob-48"]
    assert json_.verdict is Verdict.FASTER
    assert percent(json_.estimate.delta) == pytest.approx(-17.20, abs=0.3)  # of medians there, of log means here
    assert not gob.verdict.claims
    assert gob.p_adjusted > 0.3
    assert percent(found.estimate.delta) == pytest.approx(-8.94, abs=0.2)


def test_crc_is_refused_for_its_note_and_when_released_gives_the_geomean():
    a, b = go_file("crc-old.txt"), go_file("crc-new.txt")
    cells = op_cells(a, b)
    for item in cells[1:]:
        note = {"A": "hw acceleration disabled", "B": "hw acceleration enabled"}[item.cell.side.name]
        cells = change_identity(cells, item.cell.key.split("/")[1], env={"note": note})
    refused = judge_op(cells, gate(), JUDGE)
    assert (refused.verdict, refused.estimate) == (Verdict.NOT_COMPARABLE, None)
    assert refused.reasons[0].message.startswith("!!! [caliber] env.note: hw acceleration disabled -> softmax/r1_A")
    released = judge_op(cells, gate(), type(JUDGE)(0.5, 0.05, False, True))
    assert released.verdict is Verdict.FASTER
    assert len(released.shapes) == 36
    assert percent(released.estimate.delta) == pytest.approx(-31.05, abs=0.3)


def test_throughput_of_the_same_runs_points_the_other_way():
    """MB/s is no latency: its reciprocal is, and gives the same answer with the same sign."""
    a, b = (
        {name: [1.0 / value for value in values] for name, values in go_file(file, "MB/s").items()}
        for file in ("crc-old.txt", "crc-new.txt")
    )
    found = judged(a, b)
    assert percent(found.estimate.delta) == pytest.approx(-31.05, abs=0.3)
    assert percent(-found.estimate.delta) == pytest.approx(45.06, abs=0.6)


def test_go_issue_19565_only_the_paired_benchmark_enters_the_geomean():
    cells = op_cells(*go_halves("issue19565.txt"))
    found = judge_op(cells, gate(), JUDGE)
    assert {(orphan.side, orphan.key.shape) for orphan in found.ledger.orphans} == {("A", "B"), ("B", "C")}
    assert found.verdict is Verdict.SAME
    assert found.estimate.delta == 0.0
    assert [shape.verdict for shape in found.shapes] == [Verdict.SAME, Verdict.INCOMPLETE, Verdict.INCOMPLETE]
    assert "SHAPES_LEFT_OUT" in codes(found.reasons)


def test_go_issue_19634_constant_samples_are_not_outliers():
    found = judged(*go_halves("issue19634.txt"))
    assert found.verdict is Verdict.FASTER
    assert found.estimate.rounds == 5
    assert percent(found.estimate.largest) == pytest.approx(-30.88, abs=0.01)
    assert percent(found.estimate.smallest) == pytest.approx(-31.48, abs=0.01)


def test_go_small_sample_has_no_verdict_and_says_how_many_rounds_it_takes():
    found = judged(*go_halves("smallSample.txt"))
    assert (found.verdict, codes(found.reasons)[0]) == (Verdict.UNRESOLVED, "TOO_FEW_ROUNDS")
    assert found.estimate.p is None
    assert "at least 4" in found.reasons[0].message


@pytest.mark.parametrize("unit", ["x", "y"])
def test_zero_is_not_a_latency(unit):
    found = judged(*go_halves("zero.txt", unit))
    assert (found.verdict, found.estimate) == (Verdict.INCOMPLETE, None)
    assert {shape.reasons[0].code for shape in found.shapes} == {"ROW_INVALID"}


def exact(name: str, units: Sequence[str]):
    """The benchmarks of a file as rows, each unit an exact metric, each repetition a round."""
    sides = [{unit: half[index] for unit in units for half in [go_halves(name, unit)]} for index in (0, 1)]
    names = dict.fromkeys(name for side in sides for unit in side.values() for name in unit)
    rounds = max(len(values) for side in sides for unit in side.values() for values in unit.values())
    one = {name: [1.0] * rounds for name in names}
    cells = op_cells(one, one)
    result = []
    for item in cells:
        own = sides["AB".index(item.cell.side.name)]
        rows = []
        for row in item.rows:
            values = {unit: own[unit].get(row.shape, []) for unit in units}
            metrics = {unit: int(v[min(item.cell.round, len(v)) - 1]) for unit, v in values.items() if v}
            rows.append(each_row([type(item)(item.cell, None, None, None, (row,), ())], metrics=metrics)[0].rows[0])
        result.append(type(item)(item.cell, item.status, item.identity, None, tuple(rows), ()))
    return judge_op(result, gate(), JUDGE)


def test_exact_units_are_compared_exactly_to_the_last_digit():
    found = exact("zero.txt", ["a-bytes", "b-bytes", "c-bytes", "x", "y"])
    totals = {total.metric: total for total in found.metrics}
    assert (totals["a-bytes"].rows_changed, totals["x"].rows_changed) == (0, 0)
    assert str(totals["b-bytes"]) == "b-bytes 343434343432 -> 343434343434"
    assert str(totals["c-bytes"]) == "c-bytes 199999860 -> 199999858"
    assert str(totals["y"]) == "y 0 -> 200"


def test_an_exact_unit_that_varies_is_no_exact_value():
    found = exact("units.txt", ["text-bytes"])
    assert [str(total) for total in found.metrics] == ["text-bytes 100 -> 105"]
    assert "METRIC_UNSTABLE" in codes(found.reasons)


@pytest.mark.parametrize(
    ("other", "ratios", "geomean"),
    [
        ("mult_list_py37.json", (1 / 1.02, 1.42, 1.31), 1.22),
        ("mult_list_py38.json", (None, 1 / 1.16, 1 / 1.11), 1 / 1.09),
    ],
)
def test_pyperf_multiplied_lists_agree_with_pyperf(other, ratios, geomean):
    found = judged(pyperf_file("mult_list_py36.json"), pyperf_file(other))
    assert math.exp(found.estimate.delta) == pytest.approx(geomean, abs=0.008)
    for shape, ratio in zip(found.shapes, ratios, strict=True):
        if ratio is None:
            assert not shape.verdict.claims
        else:
            assert shape.verdict is (Verdict.SLOWER if ratio > 1 else Verdict.FASTER)
            assert math.exp(shape.estimate.delta) == pytest.approx(ratio, abs=0.008)


def test_random_halves_of_one_file_are_an_aa_and_make_few_claims():
    """The process is the unit: pooling the values of a process claims a difference in up to 23.6 % of such splits."""
    rng = np.random.default_rng(20)
    claims = []
    for name in ("mult_list_py36.json", "mult_list_py37.json", "mult_list_py38.json"):
        samples = pyperf_file(name)
        for _ in range(25):
            picked = rng.permutation(20)
            a, b = ({key: [v[i] for i in half] for key, v in samples.items()} for half in (picked[:10], picked[10:]))
            claims += [shape.verdict.claims for shape in judged(a, b).shapes]
    assert np.mean(claims) < 0.05


def test_a_count_of_rows_below_the_plan_withholds_the_known_answer_too():
    cells = change_status(op_cells(go_file("old.txt"), go_file("new.txt")), "r3_B", rows_expected=3)
    assert judge_op(cells, gate(), JUDGE).verdict is Verdict.INCOMPLETE


def test_two_timers_withhold_the_known_answer_too():
    cells = side_rows(op_cells(go_file("old.txt"), go_file("new.txt")), "B", timer="direct")
    assert judge_op(cells, gate(), JUDGE).verdict is Verdict.MIXED_TIMER
