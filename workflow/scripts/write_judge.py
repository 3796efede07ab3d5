"""Write the `judge:` section where the verdicts depend on it."""

import sys
from pathlib import Path

sys.stderr = open(snakemake.log[0], "w")

from harness import campaign, config

settings = config.parse(snakemake.config, Path.cwd())
campaign.write_judge(settings)
