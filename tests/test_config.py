"""config: strict, complete, one line per refusal."""

import sys
from pathlib import Path

import pytest

from harness import config

SMALL = {
    "campaign": "c",
    "manifest": "m.yaml",
    "backend": "aot",
    "target": "cuda:90",
    "sides": {"A": {}, "B": {"env": {"X": "1"}}},
}


def parse(tmp_path: Path, **changes):
    return config.parse({**SMALL, **changes}, tmp_path)


def test_defaults_come_from_the_schema(tmp_path):
    settings = parse(tmp_path)
    assert (settings.measure.rounds, settings.measure.graph, settings.judge.q) == (6, "auto", 0.05)
    assert settings.devices == ("0",)
    assert settings.manifest == tmp_path / "m.yaml"
    assert settings.a.python == sys.executable


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round": 3}, "config: .*'round' was unexpected"),
        ({"measure": {"rounds": 0}}, r"measure.rounds: 0 is less than the minimum of 1"),
        ({"measure": {"level": "deep"}}, "measure.level: 'deep' is not one of"),
        ({"measure": None}, "measure: None is not of type 'object'"),
        ({"measure": {"rounds": True}}, "measure.rounds: True is not of type 'integer'"),
        ({"sides": {"A": {}}}, "sides: 'B' is a required property"),
        ({"sides": {"A": {}, "B": {"env": {"X": 1}}}}, "sides.B.env.X: 1 is not of type 'string', 'null'"),
        ({"campaign": "../x"}, "campaign: '../x' does not match"),
        ({"devices": [0, "0"]}, "devices: '0' is listed twice"),
        ({"judge": {"margin_pct": 0}}, "judge.margin_pct: 0 is less than or equal"),
    ],
)
def test_a_refusal_names_the_key_and_the_value(tmp_path, changes, message):
    with pytest.raises(config.ConfigError, match=message):
        parse(tmp_path, **changes)


def test_a_variable_of_one_side_is_unset_on_the_other(tmp_path):
    settings = parse(tmp_path)
    assert settings.a.env == {"X": None}
    assert settings.b.env == {"X": "1"}


def test_judge_and_telemetry_are_not_part_of_the_digest(tmp_path):
    plain = parse(tmp_path).digest()
    assert parse(tmp_path, judge={"q": 0.01}, telemetry={"interval_s": 9}).digest() == plain
    assert parse(tmp_path, measure={"rounds": 4}).digest() != plain


def test_an_odd_number_of_rounds_is_warned_of(tmp_path):
    assert "is odd" in config.warnings(parse(tmp_path, measure={"rounds": 5}))[0]
    assert config.warnings(parse(tmp_path, measure={"rounds": 6})) == ()


def test_a_shared_tuner_cache_is_warned_of(tmp_path):
    assert "unquotable" in config.warnings(parse(tmp_path, measure={"tuner_cache": "shared"}))[0]


def test_a_file_that_is_no_yaml_is_one_line(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("campaign: [\n", encoding="utf-8")
    with pytest.raises(config.ConfigError, match="c.yaml: while parsing") as caught:
        config.load(path)
    assert "\n" not in str(caught.value)


def test_every_shipped_configuration_is_valid(repo_root):
    for path in sorted((repo_root / "config").glob("*.yaml")):
        config.load(path, repo_root)


def test_more_shards_than_devices_gain_nothing_and_are_warned_of(tmp_path):
    sharded = parse(tmp_path, devices=[0, 1], measure={"sweep_shards": 3})
    assert "measure.sweep_shards = 3 on 2 device(s): shards take turns, which gains no time" in config.warnings(sharded)
    assert not any("sweep" in text for text in config.warnings(parse(tmp_path, devices=[0, 1])))
