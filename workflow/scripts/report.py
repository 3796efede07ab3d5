"""Judge the operators of a campaign and render its report."""

import sys
from pathlib import Path

sys.stderr = open(snakemake.log[0], "w")

from harness import finish

finish.render(Path(snakemake.output[0]).parent)
