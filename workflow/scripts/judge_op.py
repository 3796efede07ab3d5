"""Judge one operator: its cells in, its verdict.json out."""

import sys
from pathlib import Path

sys.stderr = open(snakemake.log[0], "w")

from harness import judging

verdict = Path(snakemake.output[0])
judging.judge(verdict.parent.parent, verdict.parent.name)
