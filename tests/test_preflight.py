"""Preflight: every check by name, each refusal one line with its way out."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness import preflight
from harness.records import Workload
from tests.backends import fakes
from tests.grounds import Ground, answering, ended, found, make, on, using

LISTED = fakes.text("nvidia_smi_L.txt")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return make(tmp_path)


def test_everything_in_order_passes_and_says_what_the_interpreter_has(ground):
    assert ground.check()["modules"]["triton"]["version"] == "2.11.0"


def test_the_probe_runs_in_the_cells_interpreter_environment_and_directory(ground):
    seen = {}

    def run(command, **options):
        seen.update(options, command=command)
        return answering()(command, **options)

    ground.check(run=run)
    assert seen["command"][:2] == [sys.executable, str(preflight.PROBE)] and "--import" not in seen["command"]
    assert (seen["cwd"], seen["env"]) == (ground.root, ground.env)


def test_a_real_interpreter_is_asked_for_real(ground):
    assert ground.check(run=subprocess.run)["executable"] == sys.executable


def test_full_imports_the_modules_and_asks_torch_for_the_device(ground):
    seen = []

    def run(command, **options):
        seen.extend(command)
        return answering(device={"runtime": "cuda", "count": 1, "name": "NVIDIA H200", "error": ""})(command, **options)

    listing = fakes.answering({"nvidia-smi -L": LISTED})
    ground.check(cell=on(ground.cell, "cuda", "1"), full=True, run=run, run_tool=listing)
    assert seen[-3:] == ["--import", "--runtime", "cuda"]


def test_provider_root(ground):
    text = ground.refusal(root=ground.root / "FlagGem")
    assert text == (
        f"PREFLIGHT_FAILED check=provider_root: {ground.root / 'FlagGem'} is no directory; set provider.root"
    )


def test_a_missing_interpreter(ground):
    text = ground.refusal(cell=using(ground.cell, "/opt/none/python"))
    assert text == "PREFLIGHT_FAILED check=interpreter: /opt/none/python does not exist; set sides.A.python"


def test_an_interpreter_that_may_not_be_executed(ground):
    path = ground.root / "core_shapes.yaml"
    assert f"check=interpreter: {path} is not executable; set" in ground.refusal(cell=using(ground.cell, path))


def test_a_bare_name_is_looked_up_on_the_cells_own_path(ground, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python-vendor").symlink_to(sys.executable)
    cell = using(ground.cell, "python-vendor")
    assert "check=interpreter: python-vendor does not exist" in ground.refusal(cell=cell)
    ground.check(cell=cell, env={"PATH": str(tmp_path / "bin")})


def test_an_interpreter_that_crashes_is_quoted(ground):
    text = ground.refusal(run=ended(1, err="Traceback\nSyntaxError: invalid syntax\n"))
    assert f"check=interpreter: {sys.executable} ended with 1: SyntaxError: invalid syntax; set" in text


def test_an_interpreter_that_says_nothing_is_no_interpreter(ground):
    assert f"{sys.executable} ended with 0: no message" in ground.refusal(run=ended(0))


def test_an_interpreter_that_hangs_is_given_up(ground):
    def run(command, timeout, **options):
        raise subprocess.TimeoutExpired(command[0], timeout)

    assert "check=interpreter:" in ground.refusal(run=run) and "timed out" in ground.refusal(run=run)


def test_a_missing_module_names_itself_and_the_interpreter(ground):
    text = ground.refusal(run=answering(triton=found(found=False)))
    assert text == (
        f"PREFLIGHT_FAILED check=module_triton: {sys.executable} has no module triton; "
        "install it there, or set sides.A.python or pythonpath"
    )


def test_a_module_that_cannot_be_imported_is_quoted(ground):
    text = ground.refusal(full=True, run=answering(triton=found(path="/b/triton.py", error="ImportError: GLIBC_2.38")))
    assert "check=module_triton:" in text and "cannot import triton (/b/triton.py): ImportError: GLIBC_2.38" in text


def test_a_provider_may_ask_for_modules_of_its_own(ground):
    run = answering(sqlalchemy=found(found=False))
    assert "check=module_sqlalchemy" in ground.refusal(modules=("torch", "sqlalchemy"), run=run)


def test_a_device_that_does_not_exist(ground):
    text = ground.refusal(cell=on(ground.cell, "cuda", "7"), run_tool=fakes.answering({"nvidia-smi -L": LISTED}))
    assert text.startswith("PREFLIGHT_FAILED check=device: device '7' does not exist here; there is 0 = GPU-1a2b")


def test_a_device_that_the_cells_environment_hides(ground):
    """A side that sets the variable itself would measure another device than the lane's."""
    text = ground.refusal(
        cell=on(ground.cell, "cuda", "0"), env={**ground.env, "CUDA_VISIBLE_DEVICES": "1"},
        run_tool=fakes.answering({"nvidia-smi -L": LISTED}),
    )  # fmt: skip
    assert "check=device: device '0' does not exist here (with CUDA_VISIBLE_DEVICES=1); there is 1 =" in text


def test_the_device_the_runner_made_visible_passes(ground):
    ground.check(
        cell=on(ground.cell, "cuda", "0"), env={**ground.env, "CUDA_VISIBLE_DEVICES": fakes.H200_0},
        run_tool=fakes.answering({"nvidia-smi -L": LISTED}),
    )  # fmt: skip


def test_a_vendor_tool_that_is_missing_is_a_device_that_is_missing(ground):
    text = ground.refusal(cell=on(ground.cell, "cuda", "0"), run_tool=fakes.answering({}))
    assert "check=device: nvidia-smi is not on PATH; install the NVIDIA driver" in text


def test_a_torch_that_sees_no_device(ground):
    blind = answering(device={"runtime": "cuda", "count": 0, "name": "", "error": ""})
    cell = on(ground.cell, "cuda", "0")
    text = ground.refusal(cell=cell, full=True, run=blind, run_tool=fakes.answering({"nvidia-smi -L": LISTED}))
    assert f"check=device: torch.cuda of {sys.executable} sees no device: it counts 0 devices; install a torch" in text


def test_a_torch_without_the_vendors_module_is_told_by_the_package_that_brings_it(ground):
    lacking = {"runtime": "musa", "count": 0, "name": "", "error": "ModuleNotFoundError: No module named 'torch_musa'"}
    listed = fakes.answering({"mthreads-gmi": fakes.text("mthreads_gmi.json")})
    cell = on(ground.cell, "musa", "3")
    text = ground.refusal(cell=cell, full=True, run=answering(device=lacking), run_tool=listed)
    assert text.endswith(
        f"check=device: torch.musa of {sys.executable} does not exist: ModuleNotFoundError: No module named "
        "'torch_musa'; install it there, or set sides.A.python or pythonpath"
    )


def test_a_torch_that_sees_more_than_the_lanes_device(ground):
    two = {"runtime": "cuda", "count": 2, "name": "NVIDIA H200", "error": ""}
    cell = on(ground.cell, "cuda", "0")
    run_tool = fakes.answering({"nvidia-smi -L": LISTED})
    text = ground.refusal(cell=cell, full=True, run=answering(device=two), run_tool=run_tool)
    assert "sees 2 devices, a cell has one; leave CUDA_VISIBLE_DEVICES out of sides.A.env" in text


def test_only_the_file_half_of_a_node_is_checked(ground):
    ground.check(cell=replace(ground.cell, workload=Workload("mm", "benchmark/test_mm.py::test_gone")))
    gone = replace(ground.cell, workload=Workload("mm", "benchmark/test_gone.py::test_mm"))
    assert f"check=provider_file: {ground.root / 'benchmark/test_gone.py'} is no file;" in ground.refusal(cell=gone)


@pytest.mark.parametrize("arguments", [("--shape_file", "gone.yaml"), ("--shape_file=gone.yaml",)])
def test_a_missing_shape_file(ground, arguments):
    cell = replace(ground.cell, pytest_args=("-s", *arguments))
    assert f"check=shape_file: {ground.root / 'gone.yaml'} is no file; set" in ground.refusal(cell=cell)


def test_a_missing_replay_record_is_refused_and_a_recording_cell_needs_none(ground):
    gone = ground.autotune.with_name("gone.json")
    assert f"check=autotune_record: {gone} is missing; run round 0" in ground.refusal(autotune_path=gone)
    ground.check(cell=replace(ground.cell, autotune="record"), autotune_path=gone)
    ground.check(autotune_path=None)


def test_a_providers_own_requirement_fails_under_its_own_name(ground):
    path = ground.root / "benchmark" / "base.py"
    assert f"check=flaggems_base: {path} does not exist; set" in ground.refusal(requirements=[("flaggems_base", path)])
    ground.check(requirements=[("flaggems_benchmark", ground.root / "benchmark")])


def test_a_directory_that_cannot_be_made(ground, tmp_path):
    blocked = tmp_path / "autotune.json" / "attempt"
    assert f"check=writable: {blocked}: Not a directory; make it" in ground.refusal(writable=(blocked,))


def test_a_directory_that_allows_writing_but_no_renaming(ground, monkeypatch):
    def refuse(self, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "replace", refuse)
    assert "check=writable:" in ground.refusal() and "Operation not permitted" in ground.refusal()


def test_the_writing_check_leaves_nothing_behind(ground):
    ground.check()
    assert os.listdir(ground.attempt) == []


def test_a_full_disk(ground):
    text = ground.refusal(min_free_mb=10**12)
    assert "check=disk_space:" in text and "MB free, needs 1000000000000; free some space" in text


def test_no_disk_space_is_asked_for_where_nothing_is_written(ground):
    ground.check(writable=(), min_free_mb=10**12)


def test_every_check_has_a_name_of_its_own_and_a_promise():
    names = [item.name for item in preflight.CHECKS]
    assert len(set(names)) == len(names) and all(item.promise for item in preflight.CHECKS)
