"""The campaign's report. One output, so that Snakemake keeps one list of inputs; the rest lies beside it."""


rule report:
    input:
        expand(f"{RESULTS}/{{op}}/verdict.json", op=CAMPAIGN.ops),
    output:
        REPORT,
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/report.py"
