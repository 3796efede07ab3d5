"""The prepared campaign, and paths, for all stages. Logic lives in harness/, where it can be tested."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(workflow.basedir).parent))

from harness import campaign as campaigns
from harness import finish

campaigns.refuse_flags(sys.argv)
CAMPAIGN = campaigns.prepare(config)
campaigns.require_lanes(CAMPAIGN, dict(workflow.resource_settings.resources))

campaigns.write_judge(CAMPAIGN.config, only_if_started=True)

RESULTS = CAMPAIGN.directory.as_posix()
REPORT = f"{RESULTS}/report.md"
JUDGE = f"{RESULTS}/judge.json"
HELD = []  # the campaign lock, open for the life of the main process


wildcard_constraints:
    op=r"[a-z0-9_]+",  # as the manifest demands; naming 1 500 ops here made each match slow
    round=r"\d+",
    side="[AB]",


def get_statuses(keys):
    return [f"{RESULTS}/{key}/status.json" for key in keys]


def get_all(wildcards):
    refuse_settings()
    return get_statuses(CAMPAIGN.cells)


def get_judge(wildcards):
    # The start hook writes it, after the jobs of a first run are planned; from then on it is there.
    return [JUDGE] if Path(JUDGE).exists() else []


def get_needed(wildcards):
    refuse_settings()
    return [ancient(f"{RESULTS}/{name}") for name in CAMPAIGN.needs(get_key(wildcards))]


def get_key(wildcards):
    return f"{wildcards.op}/r{wildcards.round}_{wildcards.side}"


def get_priority(wildcards):
    return CAMPAIGN.priority(get_key(wildcards))


def get_lane(lane):
    return lambda wildcards: int(CAMPAIGN.cells[get_key(wildcards)].lane == lane)


def get_shard_lane(lane):
    return lambda wildcards: int(CAMPAIGN.shards[f"{wildcards.op}/sweep_s{wildcards.shard}"].lane == lane)


def refuse_settings():
    # While the file is parsed Snakemake has not set these yet; when jobs are planned it has.
    campaigns.refuse_settings(workflow.dag_settings, workflow.execution_settings)


def start_campaign():
    refuse_settings()
    HELD.append(campaigns.start(CAMPAIGN))
    for line in finish.preflight_sides(CAMPAIGN):
        print(f"caliber: {line}", flush=True)


def finish_campaign(complete):
    finish.finish(CAMPAIGN, complete)
