"""Round 0 in shards (measure.sweep_shards): one job, one part of an op's shapes, on the op's lane and those after it."""


rule sweep_shard:
    output:
        # Of a shard that failed too: it discards the sweep, and cell r0_A sweeps alone.
        ensure(f"{RESULTS}/{{op}}/sweep_s{{shard}}/status.json", non_empty=True),
    log:
        f"{RESULTS}/logs/{{op}}/sweep_s{{shard}}.log",
    wildcard_constraints:
        shard=r"\d+",
    priority: lambda wildcards: CAMPAIGN.priority(f"{wildcards.op}/r0_A")
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **{f"gpu{lane}": get_shard_lane(lane) for lane in CAMPAIGN.lanes()},
    params:
        python=sys.executable,
        cell=f"{RESULTS}/{{op}}/sweep_s{{shard}}/cell.json",
    shell:
        "exec {params.python:q} -m harness.cell {params.cell:q} 2> {log:q}"
