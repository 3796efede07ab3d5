"""A cell on a made-up disk, for the tests of preflight: everything is in order until a test spoils one thing."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness import backends, preflight
from harness.preflight import PreflightFailed
from harness.records import CALIBER_EPOCH, Cell, ExitCode, Measure, Provider, Side, Workload
from tests.backends import fakes


@dataclass(frozen=True)
class Ground:
    """A cell on a made-up disk, and all that `check` is told about it."""

    cell: Cell
    root: Path
    env: dict[str, str]
    autotune: Path
    attempt: Path

    def check(self, **changes):
        told = {
            "root": self.root, "env": self.env, "autotune_path": self.autotune, "writable": (self.attempt,),
            "run": answering(), **changes,
        }  # fmt: skip
        return preflight.check(told.pop("cell", self.cell), **told)

    def refusal(self, **changes) -> str:
        with pytest.raises(PreflightFailed) as caught:
            self.check(**changes)
        assert caught.value.code is ExitCode.ENVIRONMENT and "\n" not in str(caught.value)
        return str(caught.value)


def make(tmp_path: Path) -> Ground:
    """A replaying aot cell of FlagGems' mm with everything in place."""
    root = tmp_path / "provider"
    (root / "benchmark").mkdir(parents=True)
    (root / "benchmark" / "test_mm.py").write_text("", encoding="utf-8")
    (root / "core_shapes.yaml").write_text("", encoding="utf-8")
    autotune = tmp_path / "autotune.json"
    autotune.write_text("{}", encoding="utf-8")
    cell = Cell(
        epoch=CALIBER_EPOCH, campaign="demo", op="mm", round=1, side=Side("A", sys.executable, (), {}), seq=1, slot=1,
        lane=0, device="0", workload=Workload("mm", "benchmark/test_mm.py::test_mm"),
        provider=Provider("flaggems", str(root), "sha256:0"),
        instrument=backends.instrument(backends.get("aot"), "auto", "cuda:90"),
        measure=Measure(6, "core", "file", "auto", 1, 100, 100, "isolated", 2400), autotune="replay", declared_aa=False,
        allow_no_ir_diff=False, pytest_args=("-s", "--shape_file", "core_shapes.yaml", "benchmark/test_mm.py::test_mm"),
    )  # fmt: skip
    return Ground(cell, root, {"PATH": fakes.path_with_fakes()}, autotune, tmp_path / "attempt")


def found(**changes) -> dict:
    return {"found": True, "path": "/opt/torch/__init__.py", "version": "2.11.0", "error": "", **changes}


def answering(device=None, **modules):
    """A stand-in for subprocess.run: the probe of an interpreter that has `modules` beside the usual ones."""
    names = {"torch": found(), "triton": found(), "pytest": found(), **modules}
    answer = {"python": "3.12.3", "executable": sys.executable, "modules": names, "device": device}

    def run(command, **options):
        return subprocess.CompletedProcess(command, 0, f"site banner\n{json.dumps(answer)}\n", "")

    return run


def ended(rc: int, out: str = "", err: str = ""):
    return lambda command, **options: subprocess.CompletedProcess(command, rc, out, err)


def on(cell: Cell, backend: str, device: str) -> Cell:
    return replace(cell, device=device, instrument=backends.instrument(backends.get(backend), "off", ""))


def using(cell: Cell, python: object) -> Cell:
    return replace(cell, side=replace(cell.side, python=str(python)))
