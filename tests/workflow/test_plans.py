"""What Snakemake plans: fresh, resumed, changed, refused. Dry runs through Snakemake's own API, in process."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from snakemake.api import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    ResourceSettings,
    SnakemakeApi,
)
from snakemake.settings.types import Quietness, RerunTrigger

from tests.workflow.project import REPO, Project


def dry_run(project: Project, capsys, resources=None, **dag) -> Counter[str]:
    """Jobs that would run, by rule."""
    before = Path.cwd()
    os.chdir(project.root)
    try:
        with SnakemakeApi(OutputSettings(quiet={Quietness.RULES}, dryrun=True)) as api:
            workflow = api.workflow(
                resource_settings=ResourceSettings(cores=2, resources=resources or {"gpu0": 1}),
                config_settings=ConfigSettings(configfiles=[Path("config/config.yaml")]),
                snakefile=REPO / "workflow" / "Snakefile",
                workdir=project.root,
            )
            settings = DAGSettings(rerun_triggers={RerunTrigger.MTIME}, **dag)
            workflow.dag(dag_settings=settings).execute_workflow(executor="dryrun")
    finally:
        os.chdir(before)
    return planned(capsys.readouterr().err)


def planned(text: str) -> Counter[str]:
    """Snakemake's job table."""
    found: Counter[str] = Counter()
    lines = iter(text.splitlines())
    for line in lines:
        if line.split() == ["job", "count"]:
            next(lines)
            for row in lines:
                if not row.strip():
                    return found
                name, count = row.split()
                found[name] = int(count)
    return found


def test_a_fresh_campaign_plans_every_cell_and_one_job_for_all_verdicts(tmp_path, capsys):
    project = Project(tmp_path, ops=("add", "mm"), rounds=4)
    jobs = dry_run(project, capsys)
    assert jobs == {"measure_cell": 2 * 9, "report": 1, "all": 1, "total": 20}
    assert not project.results.exists(), "a dry run writes nothing"


def test_a_lane_without_a_limit_is_refused(tmp_path, capsys):
    project = Project(tmp_path, devices=(0, 1))
    with pytest.raises(Exception, match="no limit of 1 for resource gpu1"):
        dry_run(project, capsys, resources={"gpu0": 1})


@pytest.mark.parametrize("settings", [{"forceall": True}, {"forcetargets": True}, {"forcerun": {"measure_cell"}}])
def test_forced_reruns_are_refused(tmp_path, capsys, settings):
    with pytest.raises(Exception, match="is refused: it deletes"):
        dry_run(Project(tmp_path), capsys, **settings)


def test_a_typo_in_the_config_is_refused_with_its_key(tmp_path, capsys):
    project = Project(tmp_path)
    project.configure(round=3)
    with pytest.raises(Exception, match="'round' was unexpected"):
        dry_run(project, capsys)
