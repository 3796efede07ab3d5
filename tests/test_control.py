"""Control: the configuration of an A/A, and the directories whose noise may not be used."""

from __future__ import annotations

import pytest
import yaml

from harness import codec, config, control
from harness.records import Judge
from tests.test_noise import aa, noise_of

CAMPAIGN = {
    "campaign": "h200",
    "manifest": "manifests/smoke.yaml",
    "backend": "aot",
    "target": "cuda:90",
    "sides": {
        "A": {"env": {"LANG": "C"}},
        "B": {"python": "/other/python", "pythonpath": ["lib"], "env": {"DISABLE_MMA_V3": "1"}},
    },
    "measure": {"rounds": 8},
    "judge": {"margin_pct": 0.7, "noise_campaign": "results/old_aa"},
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "h200.yaml"
    path.write_text(yaml.safe_dump(CAMPAIGN), encoding="utf-8")
    return path


def test_the_control_is_the_same_campaign_with_side_a_twice(files):
    path, settings = control.write_configuration(files)
    original = config.load(files)
    assert path.as_posix() == "results/h200_aa.yaml"
    assert settings.directory.as_posix() == "results/h200_aa"
    assert settings.declared_aa
    assert (settings.a.python, settings.a.pythonpath, settings.a.env) == (
        original.a.python, original.a.pythonpath, original.a.env,
    )  # fmt: skip
    assert codec.to_json(settings.b) == {**codec.to_json(settings.a), "name": "B"}
    assert settings.measure == original.measure


def test_a_variable_that_only_b_sets_is_unset_on_both_sides_of_the_control(files):
    _, settings = control.write_configuration(files)
    assert settings.a.env == settings.b.env == {"LANG": "C", "DISABLE_MMA_V3": None}


def test_the_control_is_measured_in_full_and_leans_on_no_other(files):
    _, settings = control.write_configuration(files)
    assert settings.judge == Judge(0.7, 0.05, True, False, "")


def test_a_side_that_says_nothing_has_a_control_too():
    made = control.configuration({"campaign": "c", "sides": {"A": {}, "B": {"python": "x"}}})
    assert made["sides"] == {"A": {}, "B": {}}


def test_a_control_has_no_control(files):
    files.write_text(yaml.safe_dump({**CAMPAIGN, "declared_aa": True}), encoding="utf-8")
    with pytest.raises(control.ControlError, match="h200 is an A/A control itself"):
        control.write_configuration(files)


def test_what_is_wrong_with_the_campaign_is_said_of_the_campaign(files):
    files.write_text(yaml.safe_dump({**CAMPAIGN, "measure": {"rounds": 0}}), encoding="utf-8")
    with pytest.raises(config.ConfigError, match="h200.yaml: measure.rounds"):
        control.write_configuration(files)


def campaign(directory, cells, ended=True):
    """The files of a campaign that `control.read` looks at."""
    from harness.records import Plan, Planned

    planned = tuple(Planned(item.cell.key, item.cell.seq, item.cell.slot, 0) for item in cells)
    codec.write(directory / "plan.json", Plan("x", ("0",), planned))
    for item in cells:
        codec.write(directory / item.cell.key / "cell.json", item.cell)
        if ended:
            codec.write(directory / item.cell.key / "status.json", item.status)
    return directory


def settings(directory) -> Judge:
    return Judge(0.5, 0.05, False, False, str(directory))


def test_noise_is_read_from_a_finished_declared_control(tmp_path):
    cells, noise = aa("mm", 1.0, 2), noise_of(mm=aa("mm", 1.0, 2))
    directory = campaign(tmp_path, cells)
    codec.write(directory / "noise.json", noise)
    assert control.floor(settings(directory), cells) == noise
    assert control.floor(settings(""), cells) is None


@pytest.mark.parametrize(
    ("declared", "ended", "code", "message"),
    [
        (False, True, 4, "is no declared A/A"),
        (True, False, 5, "is unfinished (13 of 13 cells missing, mm/r0_A first)"),
        (True, True, 5, "is unfinished (not judged); finish it, then `caliber report"),
    ],
)
def test_any_other_campaign_is_refused_with_the_way_out(tmp_path, declared, ended, code, message):
    cells = aa("mm", 1.0, 2, declared_aa=declared)
    with pytest.raises(control.NoiseRefused) as refused:
        control.floor(settings(campaign(tmp_path, cells, ended)), cells)
    assert message in str(refused.value)
    assert refused.value.code == code


def test_a_cell_taken_back_makes_the_control_unfinished_again(tmp_path):
    cells = aa("mm", 1.0, 2)
    directory = campaign(tmp_path, cells)
    codec.write(directory / "noise.json", noise_of(mm=cells))
    (directory / "mm" / "r3_B" / "status.json").unlink()
    with pytest.raises(control.ControlUnfinished, match="1 of 13 cells missing, mm/r3_B first"):
        control.floor(settings(directory), cells)


def test_a_directory_without_campaign_is_refused(tmp_path):
    with pytest.raises(control.ControlUnfinished, match="no campaign there; run `caliber aa`"):
        control.floor(settings(tmp_path / "none"), ())
