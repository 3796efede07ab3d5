"""Incidents of environments that were not what they seemed (facts/incidents.md). Real interpreters, real pytest."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness import preflight
from harness.preflight import PreflightFailed
from harness.records import Workload
from tests.grounds import Ground, make, using


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return make(tmp_path)


def bare_python(directory: Path) -> Path:
    """An interpreter without any installed package."""
    path = directory / "python-bare"
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def test_an_interpreter_without_triton_is_named_before_any_cell(ground, tmp_path):
    """12 cells and 160 load runs each failed in under a second as `pytest exit 4`: triton was not where PATH led."""
    python = bare_python(tmp_path)
    with pytest.raises(PreflightFailed) as caught:
        ground.check(cell=using(ground.cell, python), run=subprocess.run)
    assert str(caught.value).startswith(f"PREFLIGHT_FAILED check=module_torch: {python} has no module torch;")


def test_a_wrong_path_is_named_where_pytest_says_unrecognized_arguments(ground):
    """FlagGems #5435: pytest ends with 4 for a path without conftest, just as it does for a missing GPU."""
    arguments = ["--level", "core", "--mode", "kernel", "benchmark/test_gone.py"]
    said = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=ground.root, env={"PATH": os.environ["PATH"]},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 4 and "unrecognized arguments: --level" in said.stderr
    gone = replace(ground.cell, workload=Workload("mm", "benchmark/test_gone.py::test_mm"))
    with pytest.raises(
        PreflightFailed, match=r"check=provider_file: .*benchmark/test_gone.py is no file; set provider"
    ):
        ground.check(cell=gone)


@pytest.mark.parametrize("name", ["provider_file", "shape_file", "autotune_record", "module_<name>", "device"])
def test_the_files_of_a_cell_are_checked_by_name(name):
    assert name in [item.name for item in preflight.CHECKS]


def test_a_disk_that_cannot_be_written_is_found_before_the_benchmark(ground, tmp_path):
    """triton #518, aphrodite #458: cache directories with EACCES, on NFS, behind dead links."""
    link = tmp_path / "cache"
    link.symlink_to(tmp_path / "unmounted" / "cache")
    with pytest.raises(PreflightFailed, match=r"check=writable: .*/cache: "):
        ground.check(writable=(link,))


def test_a_build_on_pythonpath_is_what_gets_asked(ground, tmp_path):
    """The side's own environment decides which triton there is, not the orchestrator's."""
    (tmp_path / "build" / "triton").mkdir(parents=True)
    (tmp_path / "build" / "triton" / "__init__.py").write_text("", encoding="utf-8")
    answer = ground.check(env={**ground.env, "PYTHONPATH": str(tmp_path / "build")}, run=subprocess.run)
    assert answer["modules"]["triton"]["path"] == str(tmp_path / "build" / "triton" / "__init__.py")
