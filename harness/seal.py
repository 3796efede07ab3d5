"""What a campaign was started with, and the refusal to go on with anything else.

`freeze` copies the target-side code that cells run from, so that an edit in the checkout during a run changes nothing.
"""

from __future__ import annotations

import datetime
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from harness import codec
from harness.records import CALIBER_EPOCH, ExitCode, Refusal, Seal

HARNESS = Path(__file__).parent
#: L0, and below it what a target loads; nothing else of the harness is copied or sealed.
TARGET_MODULES = (
    "__init__.py", "records.py", "decoding.py", "codec.py", "stages.py", "locations.py", "elf.py", "compilations.py",
)  # fmt: skip
AXES = ("epoch", "manifest_digest", "config_digest", "harness_digest", "provider_digest")


class SealError(Refusal):
    """A campaign was sealed with something else; the message names the axis and both values."""

    code = ExitCode.CALIBER


def target_files() -> Iterator[tuple[Path, str]]:
    """(source file, name below the frozen directory) of everything a target process may load."""
    for name in TARGET_MODULES:
        if (HARNESS / name).exists():
            yield HARNESS / name, f"harness/{name}"
    for folder in ("plugins", "providers/builtin"):
        for path in sorted((HARNESS / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                yield path, f"harness/{path.relative_to(HARNESS).as_posix()}"


def harness_digest() -> str:
    """SHA-256 over the target-side code of this checkout."""
    return digest_files((name, path) for path, name in target_files())


def frozen_digest(campaign: Path) -> str:
    """SHA-256 over the frozen copy of a campaign; equal to its seal unless somebody edited the copy."""
    root = campaign / "frozen"
    found = (path for path in sorted(root.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return digest_files((path.relative_to(root).as_posix(), path) for path in found)


def digest_files(files: Iterator[tuple[str, Path]]) -> str:
    """SHA-256 over names and bytes, in name order."""
    total = hashlib.sha256()
    for name, path in sorted(files):
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return f"sha256:{total.hexdigest()}"


def new(campaign: str, manifest: str, config: str, provider: str) -> Seal:
    """The seal of a campaign that starts now."""
    return Seal(
        epoch=CALIBER_EPOCH,
        campaign=campaign,
        manifest_digest=manifest,
        config_digest=config,
        harness_digest=harness_digest(),
        provider_digest=provider,
        created_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def check(directory: Path, current: Seal) -> bool:
    """False when the campaign is not sealed yet; SealError when it is sealed with something else."""
    path = directory / "seal.json"
    if not path.exists():
        return False
    sealed = codec.read(Seal, path)
    differing = [axis for axis in AXES if getattr(sealed, axis) != getattr(current, axis)]
    if differing:
        found = "; ".join(f"{axis}: sealed {getattr(sealed, axis)}, now {getattr(current, axis)}" for axis in differing)
        raise SealError(
            f"!!! [caliber] seal of {directory}: {found}; restore what it was started with, or choose another "
            "`campaign` name (rows of the two are not comparable)"
        )
    return True


def write(directory: Path, current: Seal, sources: Mapping[str, str]) -> None:
    """Freeze the target-side code, keep the `sources` (file name -> text) that the digests are of, then `seal.json`.

    The seal is last, so it never speaks of a torn copy.
    """
    freeze(directory)
    for name, text in sources.items():
        codec.write_text(directory / name, text)
    codec.write(directory / "seal.json", current)


def freeze(directory: Path) -> None:
    """Copy the target-side code to `<campaign>/frozen/harness`."""
    root = directory / "frozen"
    shutil.rmtree(root, ignore_errors=True)
    for source, name in target_files():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


assert set(AXES) <= {item.name for item in fields(Seal)}  # a typo here would seal nothing
