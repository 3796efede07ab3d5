"""Every verdict and the report, in one job: 1 540 jobs of a second each would take longer than judging 20 000 cells.

An op's own verdict.json is there earlier: the runner of its last cell writes it. judge.json changes with `judge:`, and
with nothing else; newer than the report, it has all verdicts made again and no cell measured.
"""


rule report:
    input:
        get_all,
        get_judge,
    output:
        # One output, so that Snakemake keeps one list of inputs; the rest lies beside it.
        REPORT,
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/report.py"
