"""Render the report of a campaign from its verdicts."""

import sys
from pathlib import Path

sys.stderr = open(snakemake.log[0], "w")

from harness import finish

finish.render(Path(snakemake.output[0]).parent)
