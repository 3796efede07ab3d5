"""Where rounds are looked for, and what is refused there."""

import pytest

from harness.foreign import rounds
from harness.foreign.entries import ForeignError
from harness.records import ExitCode


def make(root, *paths):
    for path in paths:
        (root / path).mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    "paths", [("1/A", "1/B", "2/A", "2/B", "10/A", "10/B"), ("r1_A", "r1_B", "r2_A", "r2_B", "r10_A", "r10_B")]
)
def test_both_layouts_are_found_in_the_order_of_their_numbers(tmp_path, paths):
    found = rounds.find(make(tmp_path, *paths))
    assert list(found.runs) == ["1", "2", "10"]
    assert found.runs["10"] == {"A": tmp_path / paths[4], "B": tmp_path / paths[5]}


def test_files_are_runs_too(tmp_path):
    for name in ("r1_A.log", "r1_B.json"):
        (tmp_path / name).write_text("")
    assert rounds.find(tmp_path).runs == {"1": {"A": tmp_path / "r1_A.log", "B": tmp_path / "r1_B.json"}}


def test_round_0_is_no_measurement(tmp_path):
    assert list(rounds.find(make(tmp_path, "r0_A", "r1_A", "r1_B")).runs) == ["1"]


def test_what_is_no_round_is_named(tmp_path):
    found = rounds.find(make(tmp_path, "r1_A", "r1_B", "r2_a", "notes", ".git"))
    assert found.passed_over == ("notes", "r2_a")


def test_a_round_with_one_side_withholds_everything(tmp_path):
    with pytest.raises(
        rounds.RoundsMissing, match="round 2 has no B; 1 of 2 rounds are whole, none is judged"
    ) as refused:
        rounds.find(make(tmp_path, "1/A", "1/B", "2/A"))
    assert refused.value.code is ExitCode.INCOMPLETE


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ((), "no rounds; they are looked for as ROOT/<round>/A"),
        (("r0_A",), "no rounds"),
        (("r1_A", "r01_A", "r1_B"), "round 1 has two runs A"),
        (("1/A", "1/B", "r1_A"), "round 1 has two runs A"),
    ],
)
def test_no_or_two_runs_for_one_place_are_refused(tmp_path, paths, message):
    with pytest.raises(ForeignError, match=message):
        rounds.find(make(tmp_path, *paths))


def test_a_campaign_of_caliber_is_sent_to_its_own_command(tmp_path):
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(ForeignError, match="`caliber report"):
        rounds.find(tmp_path)
    with pytest.raises(ForeignError, match="no such directory"):
        rounds.find(tmp_path / "none")
