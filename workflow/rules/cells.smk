"""One job, one cell. The order is the plan's, by priority; a lane's resource keeps one cell on a device at a time."""


rule measure_cell:
    input:
        get_needed,
    output:
        # The only declared output: everything else lives in attempts/<n>/, which Snakemake never deletes.
        ensure(f"{RESULTS}/{{op}}/r{{round}}_{{side}}/status.json", non_empty=True),
    log:
        f"{RESULTS}/logs/{{op}}/r{{round}}_{{side}}.log",
    priority: get_priority
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        **{f"gpu{lane}": get_lane(lane) for lane in CAMPAIGN.lanes()},
    params:
        python=sys.executable,
        cell=lambda wildcards: f"{RESULTS}/{get_key(wildcards)}/cell.json",
    shell:
        # exec: the runner must be Snakemake's own child, so that it dies with it.
        "exec {params.python:q} -m harness.cell {params.cell:q} 2> {log:q}"
