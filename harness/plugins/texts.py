"""Keeps the ttgir of what round 1 launched, so that a report can show what a switch changed in it.

Normalised (locations.strip) and compressed, `ir/<variant id>.ttgir.gz` beside the rows. Evidence for people: no verdict
rests on it. It must not know Triton.
PYTEST_DONT_REWRITE: another plugin may import this one before pytest does.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path

from harness import locations

STAGE = "ttgir"
#: Compressed bytes of one cell: some hundred kernels. What is beyond is left out, the first launched come first.
CAP_BYTES = 2 * 2**20


def keep(attempt: Path, files: Mapping[str, str]) -> None:
    """Write the text of each variant, id -> its ttgir file, until the cap is reached."""
    folder, left = attempt / "ir", CAP_BYTES
    folder.mkdir(exist_ok=True)
    for variant, path in files.items():
        text = locations.strip(STAGE, Path(path).read_text(encoding="utf-8", errors="surrogateescape"))
        data = gzip.compress(text.encode("utf-8", "surrogateescape"), mtime=0)
        left -= len(data)
        if left < 0:
            return
        (folder / f"{variant.replace('#', '-')}.{STAGE}.gz").write_bytes(data)
