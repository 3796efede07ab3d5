"""Is everything there that a cell needs? Asked of the target interpreter and the disk, before the benchmark is.

pytest ends with 4 for a missing module, a wrong path and a missing GPU alike; 172 runs once died of that in silence.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness import backends
from harness.backends import DeviceError, RunTool, run_tool
from harness.records import Cell, ExitCode, Marker, Refusal

PROBE = Path(__file__).with_name("plugins") / "probe.py"
MODULES = ("torch", "triton", "pytest")
MIN_FREE_MB = 500  # sixty heavy rows left 193 MB of Triton cache
PROBE_TIMEOUT_S = 300.0  # a cold import of torch from a network disk

Run = Callable[..., "subprocess.CompletedProcess[str]"]


class PreflightFailed(Refusal):
    """A named check that failed: what was observed, and the way out. One line."""

    code = ExitCode.ENVIRONMENT

    def __init__(self, check: str, observed: str, remedy: str) -> None:
        self.check, self.observed, self.remedy = check, observed, remedy
        text = f"{Marker.PREFLIGHT_FAILED.value} check={check}: {observed}; {remedy}"
        super().__init__(" ".join(text.split()))


@dataclass(frozen=True)
class Ground:
    """What the checks look at: the cell, and the exact environment and places it would run with."""

    cell: Cell
    root: Path
    env: Mapping[str, str]
    autotune_path: Path | None
    writable: tuple[Path, ...]
    requirements: tuple[tuple[str, Path], ...]
    modules: tuple[str, ...]
    full: bool
    min_free_mb: int
    run: Run
    run_tool: RunTool

    @cached_property
    def interpreter(self) -> str:
        """Absolute path of the target interpreter; a bare name is looked up on the cell's own PATH."""
        python = self.cell.side.python
        found = shutil.which(python, path=self.env.get("PATH", os.defpath))
        if found:
            return found
        state = "is not executable" if Path(python).exists() else "does not exist"
        raise PreflightFailed("interpreter", f"{python} {state}", f"set sides.{self.cell.side.name}.python")

    @cached_property
    def answer(self) -> dict[str, Any]:
        """What the probe says about the interpreter."""
        flags = ["--import", "--runtime", self.cell.instrument.runtime] if self.full else []
        command = [self.interpreter, str(PROBE), "--modules", ",".join(self.modules), *flags]
        try:
            done = self.run(
                command, cwd=self.root, env=dict(self.env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=PROBE_TIMEOUT_S, check=False,
            )  # fmt: skip
            return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]
        except (OSError, subprocess.TimeoutExpired) as error:
            observed = f"{self.interpreter} does not run: {error}"
        except (ValueError, IndexError):
            said = (done.stderr.strip().splitlines() or ["no message"])[-1]
            observed = f"{self.interpreter} ended with {done.returncode}: {said[:200]}"
        raise PreflightFailed("interpreter", observed, f"set sides.{self.cell.side.name}.python to one that runs")


@dataclass(frozen=True)
class Check:
    """One check: its name in `PREFLIGHT_FAILED check=<name>`, what it promises, and how."""

    name: str
    promise: str
    run: Callable[[Ground], None]


def check(
    cell: Cell,
    *,
    root: Path,
    env: Mapping[str, str],
    autotune_path: Path | None,
    writable: Sequence[Path] = (),
    requirements: Sequence[tuple[str, Path]] = (),
    modules: Sequence[str] = MODULES,
    full: bool = False,
    min_free_mb: int = MIN_FREE_MB,
    run: Run = subprocess.run,
    run_tool: RunTool = run_tool,
) -> dict[str, Any]:
    """Run every check in order; PreflightFailed at the first that fails. Returns what the target interpreter has.

    `root` is the provider's root and working directory; `autotune_path` the record to replay (None = do not look);
    `writable` the directories that the cell writes to; `requirements` the provider's own (check name, path) pairs.
    `full` imports the modules and asks torch for the device: once per side, at campaign start.
    """
    ground = Ground(
        cell, root, env, autotune_path, tuple(writable), tuple(requirements), tuple(modules), full, min_free_mb, run,
        run_tool,
    )  # fmt: skip
    for item in CHECKS:
        item.run(ground)
    return ground.answer


def _provider_root(ground: Ground) -> None:
    if not ground.root.is_dir():
        raise PreflightFailed("provider_root", f"{ground.root} is no directory", "set provider.root")


def _interpreter(ground: Ground) -> None:
    ground.answer  # noqa: B018 - asking is the check


def _module(ground: Ground) -> None:
    for name, found in ground.answer["modules"].items():
        if not found["found"]:
            observed = f"{ground.interpreter} has no module {name}"
        elif found["error"]:
            observed = f"{ground.interpreter} cannot import {name} ({found['path']}): {found['error']}"
        else:
            continue
        side = ground.cell.side.name
        raise PreflightFailed(f"module_{name}", observed, f"install it there, or set sides.{side}.python or pythonpath")


def _device(ground: Ground) -> None:
    instrument = ground.cell.instrument
    try:
        backends.get(instrument.backend).resolve(
            ground.cell.device, instrument.target, run=ground.run_tool, environ=ground.env
        )
    except DeviceError as error:
        raise PreflightFailed("device", error.observed, error.remedy) from None
    seen = ground.answer["device"]
    if seen and seen["count"] != 1:
        raise PreflightFailed("device", *_not_one(ground, seen))


def _not_one(ground: Ground, seen: Mapping[str, Any]) -> tuple[str, str]:
    """What torch said instead of "one device", and the way out."""
    side, module = f"sides.{ground.cell.side.name}", f"torch.{seen['runtime']} of {ground.interpreter}"
    if seen["count"]:
        names = ", ".join(ground.cell.instrument.visible_env)
        return f"{module} sees {seen['count']} devices, a cell has one", f"leave {names} out of {side}.env"
    if seen["error"].startswith("ModuleNotFoundError"):
        return f"{module} does not exist: {seen['error']}", f"install it there, or set {side}.python or pythonpath"
    why = seen["error"] or "it counts 0 devices"
    return f"{module} sees no device: {why}", "install a torch build for this device and driver"


def _provider_file(ground: Ground) -> None:
    """Only the file half of the node: a missing test function is already a clear pytest error."""
    path = ground.root / ground.cell.workload.node.split("::")[0]
    if not path.is_file():
        raise PreflightFailed("provider_file", f"{path} is no file", "set provider.root, or mend the manifest's node")


def _shape_file(ground: Ground) -> None:
    arguments = ground.cell.pytest_args
    for argument, following in zip(arguments, (*arguments[1:], ""), strict=True):
        flag, _, value = argument.partition("=")
        path = ground.root / (value or following)
        if flag == "--shape_file" and not path.is_file():
            raise PreflightFailed("shape_file", f"{path} is no file", "set measure.shapes: upstream, or provider.root")


def _autotune_record(ground: Ground) -> None:
    path = ground.autotune_path
    if ground.cell.autotune == "replay" and path is not None and not path.is_file():
        raise PreflightFailed("autotune_record", f"{path} is missing", "run round 0 of this op first (cell r0_A)")


def _requirements(ground: Ground) -> None:
    for name, path in ground.requirements:
        if not path.exists():
            raise PreflightFailed(name, f"{path} does not exist", "set provider.root to a complete checkout")


def _writable(ground: Ground) -> None:
    """Create, write, rename: a directory can allow one and refuse the next (NFS, quotas)."""
    for directory in ground.writable:
        first, second = (directory / f".preflight.{os.getpid()}.{n}" for n in (1, 2))
        try:
            directory.mkdir(parents=True, exist_ok=True)
            first.write_bytes(b"caliber")
            first.replace(second)
            second.unlink()
        except OSError as error:
            raise PreflightFailed("writable", f"{directory}: {error.strerror}", "make it writable") from None


def _disk_space(ground: Ground) -> None:
    for directory in ground.writable:
        free = shutil.disk_usage(directory).free // 2**20
        if free < ground.min_free_mb:
            raise PreflightFailed(
                "disk_space", f"{directory} has {free} MB free, needs {ground.min_free_mb}", "free some space"
            )


#: In this order: an early failure explains the later ones.
CHECKS = (
    Check("provider_root", "the provider's root is a directory", _provider_root),
    Check("interpreter", "the target interpreter exists, is executable and runs", _interpreter),
    Check("module_<name>", "the target interpreter has torch, triton and pytest", _module),
    Check("device", "the cell's device exists, is visible, and torch sees it", _device),
    Check("provider_file", "the file half of the workload's node exists", _provider_file),
    Check("shape_file", "the shape file handed to the benchmark exists", _shape_file),
    Check("autotune_record", "the tuning record that the cell replays exists", _autotune_record),
    Check("<provider's own>", "the files a provider names as required exist", _requirements),
    Check("writable", "files can be made and renamed where the cell writes", _writable),
    Check("disk_space", f"at least {MIN_FREE_MB} MB are free there", _disk_space),
)
