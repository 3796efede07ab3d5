"""Receipts: SHA-256 of everything that the verdicts of a campaign rest on, in `receipts.json` beside the report.

Paths are relative to the campaign, so that a copy of it can be verified anywhere. The same files give the same bytes.
The runner hashed each attempt's evidence when the cell ended; those hashes are taken over as recorded, which is both
cheaper and stricter: a file altered between the cell's end and the report is caught by `caliber verify`.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Optional

from harness import codec, control, store
from harness.records import CellEvidence, Seal, Status
from harness.store import Superseded

SCHEMA = 1
NAME = "receipts.json"
HARNESS = Path(__file__).parent
#: What makes verdicts, gates and caliber tables out of evidence: these modules and all that they import.
JUDGING = ("judging", "fingerprint", "caliber")
#: Packages whose release can move the last digits of a number.
NUMERIC = ("numpy", "scipy")
#: Files of a campaign and of an op that are there or not, depending on how far it got.
OF_CAMPAIGN = (
    "seal.json", "manifest.yaml", "config.json", "plan.json", "judge.json", "caliber.json",
    control.KEPT,
)  # fmt: skip
OF_OP = ("autotune.json", "gate.json", "verdict.json")


@dataclass(frozen=True)
class Receipts:
    """`files`: path below the campaign -> SHA-256. `recorded` of them were taken from a status, `hashed` read now.

    `seal` repeats the digests of manifest, configuration, provider and target-side code; `judging` and `packages` are
    the code that judged.
    """

    schema: int
    campaign: str
    seal: Optional[Seal]
    packages: Mapping[str, str]
    judging: Mapping[str, str]
    files: Mapping[str, str]
    recorded: int
    hashed: int


def write(
    directory: Path, campaign: str, cells: Iterable[Sequence[CellEvidence]], superseded: Sequence[Superseded]
) -> Receipts:
    """Write `receipts.json`, after the verdicts and the caliber table. `cells` are those of each op."""
    hashed = [*_of_campaign(directory), *_of_superseded(directory, superseded)]
    recorded: dict[str, str] = {}
    for old in superseded:
        recorded |= _evidence(old.cell, old.status)
    for own in cells:
        hashed += _of_op(directory, own)
        for item in own:
            recorded |= _evidence(item.cell.key, item.status) if item.status else {}
    seal = directory / "seal.json"
    found = Receipts(
        schema=SCHEMA,
        campaign=campaign,
        seal=codec.read(Seal, seal) if seal.exists() else None,
        packages=packages(),
        judging=judging(),
        files=dict(sorted(({path: sha256(directory / path) for path in hashed} | recorded).items())),
        recorded=len(recorded),
        hashed=len(hashed),
    )
    codec.write(directory / NAME, found)
    return found


def judging() -> Mapping[str, str]:
    """Module of the judging half -> SHA-256, as installed here."""
    return {f"harness/{name}.py": sha256(HARNESS / f"{name}.py") for name in sorted(_closure())}


def packages() -> Mapping[str, str]:
    """What the numbers are computed with, here."""
    return {"python": platform.python_version(), **{name: version(name) for name in NUMERIC}}


def sha256(path: Path) -> str:
    """Of the bytes of a file, in hex."""
    return digest(path.read_bytes())


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


@cache
def _closure() -> frozenset[str]:
    """Read from the syntax trees: a list by hand would miss the module that a verdict passes through tomorrow."""
    seen: set[str] = set()
    todo = set(JUDGING)
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= set(_imports(HARNESS / f"{name}.py")) - seen
    return frozenset(seen)


def _imports(path: Path) -> Iterator[str]:
    """The modules beside it that a module imports, lazily or not. Packages (backends, samplers) judge nothing."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            source = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                parts = f"{source}{alias.name}".split(".")
                if parts[0] == "harness" and len(parts) > 1 and (HARNESS / f"{parts[1]}.py").exists():
                    yield parts[1]


def _of_campaign(directory: Path) -> Iterator[str]:
    yield from (name for name in OF_CAMPAIGN if (directory / name).exists())
    for path in sorted((directory / "frozen").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(directory).as_posix()


def _of_op(directory: Path, cells: Sequence[CellEvidence]) -> Iterator[str]:
    """The op's own files, and of each cell its description and its status."""
    op = cells[0].cell.op
    yield from (f"{op}/{name}" for name in OF_OP if (directory / op / name).exists())
    for item in cells:
        yield f"{item.cell.key}/cell.json"
        if item.status is not None:
            yield f"{item.cell.key}/status.json"


def _of_superseded(directory: Path, superseded: Sequence[Superseded]) -> Iterator[str]:
    for old in superseded:
        attempt = store.attempt_directory(directory / old.cell, old.status.attempt)
        for path in (attempt / store.SUPERSEDED, *sorted((attempt / store.TAKEN_BACK).glob("*"))):
            yield path.relative_to(directory).as_posix()


def _evidence(key: str, status: Status) -> Mapping[str, str]:
    """The files of an attempt, with the hashes that the runner recorded when it ended."""
    return {f"{key}/attempts/{status.attempt}/{name}": digest for name, digest in status.evidence_sha256.items()}
