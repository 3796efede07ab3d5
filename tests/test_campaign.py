"""campaign: what may be planned and started; everything Snakemake asks is a function here."""

import dataclasses
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from harness import campaign, codec, config, manifest, store
from harness.records import Judge
from tests.workflow.project import Project


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    project = Project(tmp_path, ops=("add", "mm"), rounds=2, devices=(0, 1))
    monkeypatch.chdir(project.root)
    return campaign.build(config.load(project.root / "config/config.yaml"))


@pytest.mark.parametrize("flag", sorted(campaign.FORBIDDEN))
def test_a_forbidden_flag_is_refused_with_its_reason_and_the_way_out(flag):
    with pytest.raises(campaign.CampaignError, match=f"snakemake {flag} is refused: .*; a plain `snakemake` resumes"):
        campaign.refuse_flags(["/usr/bin/snakemake", "--cores", "2", flag])


def test_flags_of_another_program_are_not_ours():
    campaign.refuse_flags(["/usr/bin/pytest", "-f"])


def test_a_flag_from_a_profile_is_refused_too():
    with pytest.raises(campaign.CampaignError, match="--keep-incomplete is refused"):
        campaign.refuse_settings(None, SimpleNamespace(keep_incomplete=True, keep_metadata=True))
    campaign.refuse_settings(None, None)


def test_every_lane_needs_its_limit(prepared):
    campaign.require_lanes(prepared, {"gpu0": 1, "gpu1": 1})
    with pytest.raises(campaign.CampaignError, match=r"gpu1 \(seen: 2\).*pass --resources gpu0=1 gpu1=1"):
        campaign.require_lanes(prepared, {"gpu0": 1, "gpu1": 2})


def test_the_first_of_the_plan_has_the_highest_priority(prepared):
    ranks = [prepared.priority(key) for key in prepared.cells]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[-1] > 0


def test_starting_writes_seal_plan_and_every_cell(prepared):
    campaign.start(prepared).close()
    directory = prepared.directory
    assert (directory / "seal.json").exists()
    assert (directory / "frozen/harness/records.py").exists()
    assert all((directory / key / "cell.json").exists() for key in prepared.cells)
    assert store.planned_cells(directory) == len(prepared.cells)


def test_a_cell_that_has_ended_keeps_its_description(prepared):
    campaign.start(prepared).close()
    ended, running = (prepared.directory / key for key in ("add/r0_A", "add/r1_A"))
    for path in (ended, running):
        (path / "cell.json").write_text("{}")
    (ended / "status.json").write_text("{}")
    campaign.start(prepared).close()
    assert (ended / "cell.json").read_text() == "{}"
    assert (running / "cell.json").read_text() != "{}"


def test_a_cell_that_has_ended_needs_nothing(prepared):
    """Round 1 of a finished op measured again must not have Snakemake delete rounds 2..N and measure those too."""
    assert prepared.needs("mm/r0_A") == ()
    assert prepared.needs("mm/r1_B") == ("mm/r0_A/status.json",)
    assert prepared.needs("mm/r2_A") == ("mm/r1_A/status.json", "mm/r1_B/status.json")
    codec.write_text(prepared.directory / "mm/r2_A/status.json", "{}")
    assert prepared.needs("mm/r2_A") == ()


def test_a_started_campaign_keeps_what_its_digests_are_of(prepared):
    with campaign.start(prepared):
        pass
    kept = prepared.directory
    assert manifest.load(kept / "manifest.yaml").digest == prepared.seal.manifest_digest
    assert config.digest(json.loads((kept / "config.json").read_text())) == prepared.seal.config_digest


def test_two_runs_of_a_campaign_exclude_each_other_and_the_second_names_the_first(prepared):
    code = "import sys, fcntl; s = open(sys.argv[1], 'a+'); fcntl.flock(s, 2); s.truncate(0); s.write('pid 7 on h\\n');"
    code += "s.flush(); print('held', flush=True); sys.stdin.read()"
    path = prepared.directory / ".lock"
    path.parent.mkdir(parents=True)
    holder = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(campaign.CampaignError, match="is being run by pid 7 on h"):
        campaign.start(prepared)
    holder.communicate()
    campaign.start(prepared).close()


def test_judge_json_is_rewritten_only_when_it_changes(prepared):
    campaign.write_judge(prepared.config, only_if_started=True)
    path = prepared.directory / "judge.json"
    assert not path.exists()
    campaign.write_judge(prepared.config)
    os.utime(path, (1, 1))
    campaign.write_judge(prepared.config)
    assert path.stat().st_mtime == 1
    changed = dataclasses.replace(prepared.config, judge=dataclasses.replace(prepared.config.judge, q=0.01))
    campaign.write_judge(changed)
    assert codec.read(Judge, path).q == 0.01


def test_a_manifest_of_another_provider_is_refused(tmp_path, monkeypatch):
    project = Project(tmp_path, ops=("add",))
    project.configure(provider={"name": "builtin"})
    monkeypatch.chdir(project.root)
    with pytest.raises(campaign.CampaignError, match="is for provider 'flaggems', the config says 'builtin'"):
        campaign.build(config.load(project.root / "config/config.yaml"))
