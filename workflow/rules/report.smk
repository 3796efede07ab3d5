"""The campaign's report. One output, so that Snakemake keeps one list of inputs; the rest lies beside it."""


rule report:
    input:
        expand(RESULTS + "/{op}/verdict.json", op=CAMPAIGN.ops),
    output:
        REPORT,
    log:
        RESULTS + "/logs/report.log",
    conda:
        "../../environment.yml"
    script:
        "../scripts/report.py"
