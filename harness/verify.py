"""`caliber verify`: does a campaign still say what its sealed files say? Offline, read-only, at any path.

Three questions: is every receipted file the one that was receipted, is the code that cells ran the sealed one, and do
verdicts, gates and the caliber table follow from the files once more? All that differs is named; nothing is mended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from harness import caliber, codec, config, fingerprint, judging, manifest, receipts, seal, store
from harness.difference import differences
from harness.findings import OpVerdict
from harness.receipts import Receipts
from harness.records import CellEvidence, ExitCode, Plan, Refusal, Seal
from harness.verdict import judge_campaign

Kind = Literal["missing", "changed", "not receipted", "seal", "differs", "unreadable"]


class NoReceipts(Refusal):
    """A campaign without receipts cannot be verified."""


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it was: a file, or `file: field` of something derived."""

    kind: Kind
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.where}{f': {self.text}' if self.text else ''}"


@dataclass(frozen=True)
class Verification:
    """What was checked and what was found. `code` names judging modules and packages other than the receipted ones."""

    campaign: str
    files: int
    recorded: int
    ops: int
    evidence: tuple[Problem, ...]
    derived: tuple[Problem, ...]
    code: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.CALIBER if self.evidence or self.derived else ExitCode.DONE


def verify(directory: Path) -> Verification:
    """Check a campaign against its receipts, seal and verdicts."""
    plan, path = store.read_plan(directory), directory / receipts.NAME
    if not path.exists():
        raise NoReceipts(f"{path}: no receipts; `caliber report {directory}` writes them")
    known = codec.read(Receipts, path)
    derived: list[Problem] = []
    verdicts: dict[str, OpVerdict] = {}
    tables: dict[str, Any] = {}

    def judge(op: str) -> Iterator[Problem]:
        cells = store.op_evidence(directory, plan, op)
        verdicts[op], tables[op] = judging.derive(directory, op, cells, offline=True), caliber.table(cells)
        yield from _of_op(directory, op, cells, verdicts[op])

    for op in store.ops(plan):
        derived += _read(op, judge(op))
    derived += _read("campaign", _of_campaign(directory, verdicts, tables))
    return Verification(
        campaign=plan.campaign,
        files=len(known.files),
        recorded=known.recorded,
        ops=len(verdicts),
        evidence=(
            *_files(directory, known),
            *_unlisted(directory, plan, known),
            *_read("seal.json", _sealed(directory)),
        ),
        derived=tuple(derived),
        code=tuple(_other_code(known)),
    )


def text(found: Verification) -> str:
    """For the terminal: what was checked, everything that is not as it was, and what to make of it."""
    lines = [
        f"{found.campaign}: {found.files} receipted files hashed again ({found.recorded} receipts were taken by the "
        f"runners when the cells ended), {found.ops} ops judged again",
        *map(str, found.evidence),
        *map(str, found.derived),
    ]
    if found.code:
        lines.append(f"judging code is not the receipted one: {', '.join(found.code)}")
    return "\n".join([*lines, _conclusion(found)]) + "\n"


def _conclusion(found: Verification) -> str:
    if found.evidence:
        return f"NOT VERIFIED: {len(found.evidence)} files or seals are not what was receipted"
    if found.derived and found.code:
        return (
            f"JUDGING CODE CHANGED: the evidence is intact, {len(found.derived)} values differ under another judging "
            "code; check out the code of the report, or judge again with `caliber report`"
        )
    if found.derived:
        return f"NOT VERIFIED: the evidence is intact, {len(found.derived)} values on file do not follow from it"
    return "verified: every file is as receipted, every verdict follows from them"


def _read(where: str, found: Iterator[Problem]) -> Iterator[Problem]:
    """`found`, and what cannot be read on the way as a problem of its own: a damaged campaign is what this is for."""
    try:
        yield from found
    except (Refusal, OSError, ValueError, KeyError, TypeError) as error:
        yield Problem("unreadable", where, f"{type(error).__name__}: {' '.join(str(error).split())}")


def _files(directory: Path, known: Receipts) -> Iterator[Problem]:
    for name, expected in known.files.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts:
            yield Problem("changed", name, "is no path below the campaign; receipts.json was edited")
        elif not (directory / name).is_file():
            yield Problem("missing", name, "")
        elif (found := receipts.sha256(directory / name)) != expected:
            yield Problem("changed", name, _how(directory / name, found, expected))


def _how(path: Path, found: str, expected: str) -> str:
    """Git with autocrlf once rewrote every file and changed every digest: that has a name of its own."""
    if receipts.digest(path.read_bytes().replace(b"\r\n", b"\n")) == expected:
        return "its line ends were rewritten to CRLF, nothing else; was it checked out by a git with autocrlf?"
    return f"is {found}, receipted {expected}"


def _unlisted(directory: Path, plan: Plan, known: Receipts) -> Iterator[Problem]:
    """A cell that ended after the report, or a verdict made since: the report does not speak of it."""
    names = [f"{cell.key}/status.json" for cell in plan.cells]
    names += [f"{op}/{name}" for op in store.ops(plan) for name in receipts.OF_OP]
    for name in names:
        if name not in known.files and (directory / name).exists():
            yield Problem("not receipted", name, f"newer than the report; `caliber report {directory}` takes it in")


def _sealed(directory: Path) -> Iterator[Problem]:
    """The code that cells ran, the manifest and the configuration, against the seal; a campaign may have none."""
    if not (directory / "seal.json").exists():
        yield Problem("seal", "seal.json", "is not there: what the campaign was started with is not known")
        return
    sealed = codec.read(Seal, directory / "seal.json")
    kept = {
        "frozen": (seal.frozen_digest, sealed.harness_digest),
        "manifest.yaml": (lambda path: manifest.load(path / "manifest.yaml").digest, sealed.manifest_digest),
        "config.json": (lambda path: config.digest(_json(path / "config.json")), sealed.config_digest),
    }
    for name, (digest, expected) in kept.items():
        if (directory / name).exists():
            yield from _read(name, _differs(name, directory, digest, expected))


def _differs(name: str, directory: Path, digest: Callable[[Path], str], sealed: str) -> Iterator[Problem]:
    found = digest(directory)
    if found != sealed:
        yield Problem("seal", name, f"is {found}, sealed {sealed}")


def _json(path: Path) -> Any:
    return json.loads(codec.read_text(path))


def _of_op(directory: Path, op: str, cells: tuple[CellEvidence, ...], verdict: OpVerdict) -> Iterator[Problem]:
    complete = all(item.status is not None for item in cells)
    if complete or (directory / op / "verdict.json").exists():
        yield from _compare(directory, f"{op}/verdict.json", verdict)
    if (directory / op / "gate.json").exists():
        prints = {item.cell.side.name: item.fingerprint for item in cells if item.cell.round == 1}
        yield from _compare(directory, f"{op}/gate.json", fingerprint.gate(op, prints.get("A"), prints.get("B")))


def _of_campaign(directory: Path, verdicts: Mapping[str, OpVerdict], tables: Mapping[str, Any]) -> Iterator[Problem]:
    """What only all ops together give: the caliber table, and the verdicts after the correction across ops."""
    settings = judging.settings(directory)
    yield from _compare(directory, "caliber.json", tables)
    path = directory / "report.json"
    if path.exists():
        told = {item["op"]: item["verdict"] for item in _json(path)["ops"]}
        found = {line.op: line.verdict.value for line in judge_campaign(verdicts, settings).ops}
        for where, was, now in differences(told, found):
            yield Problem("differs", f"report.json: {where}", f"on file {was}, derived {now}")


def _compare(directory: Path, name: str, derived: Any) -> Iterator[Problem]:
    if not (directory / name).exists():
        yield Problem("differs", name, "is not on file, but follows from what is")
        return
    for where, was, now in differences(_json(directory / name), codec.to_json(derived)):
        yield Problem("differs", f"{name}: {where}", f"on file {was}, derived {now}")


def _other_code(known: Receipts) -> Iterator[str]:
    here = receipts.judging()
    yield from (name for name in sorted({*known.judging, *here}) if known.judging.get(name) != here.get(name))
    installed = receipts.packages()
    for name in receipts.NUMERIC:
        if known.packages.get(name) != installed[name]:
            yield f"{name} {installed[name]} instead of {known.packages.get(name)}"
