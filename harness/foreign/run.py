"""One run: a directory or a file that one process left -> its identity, its markers, its rows.

Two steps, so that caliber can refuse between them: `opened` reads no latency, `parsed` reads them all. Files are known
by what they hold, not by their names. A run is one process; what two processes left is two runs, and refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from harness import codec, store
from harness.foreign import marks, reading, recorded, sources, tables
from harness.foreign.entries import ForeignError, Kind, Table
from harness.foreign.reading import Text
from harness.foreign.sources import Source
from harness.records import Event, Fingerprint, Identity, Marker, Outcome, Row

IDENTITY = re.compile(r'\A\s*\{(?=.*"harness_digest"\s*:)(?=.*"autotune_mode"\s*:)', re.DOTALL)
ROWS = re.compile(r'\{"op": ?".*"occurrence": ?\d')
FINGERPRINT = re.compile(r'\A\s*\{\s*"variants"\s*:.*"compile_count"\s*:', re.DOTALL)
EVENTS = re.compile(r'\{"code": ?".*"row": ?"')
LISTED = 8
#: What a compiler leaves, by the thousand: none of it says what a benchmark measured.
COMPILED = frozenset(
    {".ttir", ".ttgir", ".llir", ".ptx", ".cubin", ".amdgcn", ".hsaco", ".source", ".so", ".py", ".pyc"}
)
READERS: Mapping[Kind, Callable[[Text], tuple[Sequence[Table], bool]]] = {
    "record log": recorded.read_log,
    "console": tables.read,
}


@dataclass(frozen=True)
class Opened:
    """A run before any of its latencies is read. `fault` says why a file that looks like an identity is none."""

    path: Path
    identity: Identity | None
    fault: str
    fingerprint: Fingerprint | None
    texts: tuple[Text, ...]
    marks: marks.Marks

    @cached_property
    def recorded(self) -> bool:
        """Did this run tune itself and record what it chose?"""
        mode = self.identity.autotune_mode if self.identity else ""
        return mode == "record" or bool(self.marks.total()[marks.RECORDED])

    @cached_property
    def started(self) -> datetime | None:
        """When its process started; None when no identity says it, or without a time zone."""
        try:
            found = datetime.fromisoformat(self.identity.started_at) if self.identity else None
        except ValueError:
            return None
        return found if found and found.tzinfo else None


@dataclass(frozen=True)
class Run:
    """A run whole: FlagGems' tables, or rows that caliber wrote, each with its place.

    `used` says where the rows are from; `torn` names what its writer could not finish; `failed`: op or test -> reason.
    """

    opened: Opened
    tables: tuple[Table, ...]
    own: tuple[tuple[Row, str], ...]
    used: tuple[str, ...]
    warnings: tuple[str, ...]
    torn: tuple[str, ...]
    failed: Mapping[str, str]
    skipped: tuple[str, ...]


def opened(path: Path) -> Opened:
    """Read the texts of a run, its identity and its markers. ForeignError when it cannot be one run."""
    run = _attempt(path)
    texts = [text for file in _files(run) if (text := reading.read(file, wanted=run.is_file()))]
    found = marks.Marks()
    identities = [text for text in texts if _is_json(text) and IDENTITY.search(text.whole)]
    prints = [text for text in texts if _is_json(text) and FINGERPRINT.search(text.whole)]
    _one(identities, "identities")
    _one(prints, "fingerprints")
    identity, fault = _identity(identities[0]) if identities else (None, "")
    fingerprint = codec.loads(Fingerprint, prints[0].whole, str(prints[0].path)) if prints else None
    for text in texts:
        if not _is_json(text):
            marks.scan(text, found)
    _count_events([text for text in texts if EVENTS.match(text.lines[0] if text.lines else "")], found)
    left = tuple(text for text in texts if text not in (*identities, *prints))
    return Opened(path, identity, fault, fingerprint, left, found)


def parsed(run: Opened) -> Run:
    """Read the rows. No row at all is an error that names the files tried: it must not look like an empty report."""
    own = [text for text in run.texts if text.lines and ROWS.match(text.lines[0])]
    _one(own, "files of caliber's rows")
    found = _own(run, own[0]) if own else _flaggems(run)
    if not found.tables and not found.own:
        tried = [str(text.path) for text in run.texts]
        more = f" and {len(tried) - LISTED} more" if len(tried) > LISTED else ""
        hint = "; ".join([*found.torn, *(f"failed: {op}: {why}" for op, why in found.failed.items())][:2])
        raise ForeignError(
            f"{run.path}: no row of a benchmark in {', '.join(tried[:LISTED]) or 'any text file'}{more}"
            f" (a console log has tables only under pytest -s){f'; {hint}' if hint else ''}"
        )
    return found


def _own(run: Opened, text: Text) -> Run:
    """Rows that a caliber cell wrote; the provider's own tables beside them are not needed."""
    rows = tuple((row, text.place(number)) for number, row in enumerate(codec.read_lines(Row, text.path), 1))
    torn = (f"{text.place(len(text.lines))}: torn last line left out",) if text.torn else ()
    return Run(run, (), rows, (f"{len(rows)} rows from {text.path} (caliber)",), (), torn, {}, ())


def _flaggems(run: Opened) -> Run:
    found, torn = [], []
    failed = {**run.marks.failed_ops, **run.marks.failed_tests}
    skipped = list(run.marks.skipped)
    for text in run.texts:
        result = recorded.read_result(text)
        if result:
            found.append(Source(text.path, "record json", result.tables))
            failed |= result.failed
            skipped += [f"{op}: {reason}" for op, reason in result.skipped.items()]
        elif not _is_json(text):
            for kind, read in READERS.items():
                rows, cut = read(text)
                found += [Source(text.path, kind, tuple(rows))] if rows else []
                torn += [f"{text.place(len(text.lines))}: torn last line left out ({kind})"] if cut else []
    chosen = sources.choose(found, bool(torn), run.started)
    return Run(run, chosen.tables, (), chosen.used, chosen.warnings, tuple(torn), failed, tuple(skipped))


def _attempt(path: Path) -> Path:
    """The run itself; of a caliber cell, the attempt that its status promoted."""
    if not path.exists():
        raise ForeignError(f"{path}: no such run; name a directory, or a file, of benchmark output")
    if not (path / "attempts").is_dir():
        return path
    ended = store.status(path)
    if ended is None:
        raise ForeignError(f"{path}: a cell of caliber that has not ended; finish its campaign first")
    if ended.outcome is not Outcome.MEASURED:
        raise ForeignError(f"{path}: a cell of caliber that measured nothing ({ended.outcome.value}): {ended.reason}")
    return store.attempt_directory(path, ended.attempt)


def _files(run: Path) -> Iterator[Path]:
    """The files of a run; kernel caches and hidden folders are none of it."""
    if run.is_file():
        yield run
    for folder, folders, names in os.walk(run):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and "cache" not in name)
        paths = (Path(folder) / name for name in sorted(names) if not name.startswith("."))
        yield from (path for path in paths if path.suffix not in COMPILED and path.is_file())


def _one(found: list[Text], what: str) -> None:
    if len(found) > 1:
        raise ForeignError(f"two {what}: {found[0].path} and {found[1].path}; a run is one process, name one of them")


def _identity(text: Text) -> tuple[Identity | None, str]:
    try:
        return codec.loads(Identity, text.whole, str(text.path)), ""
    except codec.CodecError as error:
        return None, str(error)


def _is_json(text: Text) -> bool:
    return bool(text.lines) and text.lines[0].lstrip().startswith("{")


def _count_events(texts: list[Text], found: marks.Marks) -> None:
    """Markers of a caliber attempt: its events have them all, its log at least as many or none."""
    for text in texts:
        for marker in Marker:
            events = sum(event.code == marker.value for event in codec.read_lines(Event, text.path))
            missing = events - found.total()[marker.value]
            if missing > 0:
                found.unplaced[marker.value] += missing
