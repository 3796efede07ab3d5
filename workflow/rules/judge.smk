"""A verdict per operator, as soon as all its cells have ended. judge.json changes with `judge:`, and nothing else."""


rule judge_op:
    input:
        lambda wildcards: get_statuses(wildcards.op),
        judge=RESULTS + "/judge.json",
    output:
        RESULTS + "/{op}/verdict.json",
    log:
        RESULTS + "/logs/{op}/judge.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/judge_op.py"


rule write_judge:
    output:
        RESULTS + "/judge.json",
    log:
        RESULTS + "/logs/judge.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/write_judge.py"
