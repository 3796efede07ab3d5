"""A verdict per operator, as soon as all its cells have ended. judge.json changes with `judge:`, and nothing else."""


rule judge_op:
    input:
        lambda wildcards: get_statuses(CAMPAIGN.keys[wildcards.op]),
        judge=f"{RESULTS}/judge.json",
    output:
        f"{RESULTS}/{{op}}/verdict.json",
    log:
        f"{RESULTS}/logs/{{op}}/judge.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/judge_op.py"


rule write_judge:
    output:
        f"{RESULTS}/judge.json",
    log:
        f"{RESULTS}/logs/judge.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/write_judge.py"
