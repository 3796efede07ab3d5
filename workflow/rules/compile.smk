"""What round 0 launched, compiled for each side before it is measured: off the devices, in parallel over the cores."""


rule compile_ahead:
    input:
        ancient(f"{RESULTS}/{{op}}/r0_A/status.json"),
    output:
        ensure(f"{RESULTS}/{{op}}/ahead_{{side}}.json", non_empty=True),
    log:
        f"{RESULTS}/logs/{{op}}/ahead_{{side}}.log",
    # Before any cell: a lane may be waiting for it, and it uses none.
    priority: len(CAMPAIGN.cells) + 1
    conda:
        "../../environment.yml"
    threads: 1
    params:
        python=sys.executable,
        cell=lambda wildcards: f"{RESULTS}/{wildcards.op}/r1_{wildcards.side}/cell.json",
    shell:
        "exec {params.python:q} -m harness.ahead {params.cell:q} 2> {log:q}"
