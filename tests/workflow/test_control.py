"""An A/A control through the real workflow: `caliber aa`, its noise, and another campaign's margin."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness import codec
from harness.noise import Noise
from tests.workflow.project import Project


def caliber(project, *arguments):
    command = [sys.executable, "-m", "harness", *arguments]
    return subprocess.run(command, cwd=project.root, env=project.env, text=True, capture_output=True, timeout=120)


@pytest.mark.campaign
def test_a_control_runs_prints_its_noise_and_widens_the_margin_of_its_campaign(tmp_path):
    project = Project(tmp_path, ops=("mm",), rounds=4)
    ended = caliber(project, "aa", "--cores", "1")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "A/A t_aa: |delta| of identical sides, 4 rounds, per shape" in ended.stdout
    assert "judge: {noise_campaign: results/t_aa} in config/config.yaml" in ended.stdout
    noise = codec.read(Noise, project.root / "results/t_aa/noise.json")
    assert (noise.campaign, noise.rounds, noise.by_op["mm"].number) == ("t_aa", 4, 2)
    cells = [line.split()[0] for line in project.measured()]
    assert len(cells) == 9, "measured in full, though the sides are the same"
    project.configure(judge={"noise_campaign": "results/t_aa"})
    ran = project.run()
    assert ran.returncode == 0, ran.stdout
    assert "caliber: noise floor from t_aa: ops 1, rounds 4" in ran.stdout
    verdict = json.loads((project.results / "mm/verdict.json").read_text())
    assert verdict["margin_source"] == "A/A t_aa: p95 of 2 shapes"
    assert verdict["verdict"] != "SLOWER", "identical sides read as much"
    told = caliber(project, "explain", "results/t", "mm", "[[8]]").stdout
    assert "verdict.json says " in told and "this derivation gives the same" in told
    assert "(A/A t_aa: p95 of 2 shapes)" in told
    unknown = caliber(project, "explain", "results/t", "nm")
    assert (unknown.returncode, unknown.stderr) == (1, "caliber: no op 'nm'; near: mm\n")


def test_a_campaign_that_leans_on_no_control_is_refused_before_it_measures(tmp_path):
    project = Project(tmp_path, ops=("add",), rounds=2)
    project.configure(judge={"noise_campaign": "results/none_aa"})
    ended = project.run()
    assert ended.returncode != 0
    assert "judge.noise_campaign: results/none_aa: no campaign there; run `caliber aa`" in ended.stdout
    assert project.measured() == []
