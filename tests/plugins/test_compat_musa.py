"""compat_musa, in a pytest of its own beside a fake flag_gems."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FFT = "benchmark/test_fft.py"
GUARDED = """
import flag_gems, pytest

@pytest.mark.skipif({condition}, reason={reason!r})
@pytest.mark.parametrize("size", [1, 2])
def test_perf(size):
    print("RAN", size)
"""


def run(directory: Path, *arguments: str, vendor: str = "mthreads") -> str:
    """The output of pytest with the plugin; flag_gems is dispatched to `vendor`."""
    (directory / "flag_gems.py").write_text(f"vendor_name = {vendor!r}\n", encoding="utf-8")
    plugins = ["-p", "harness.plugins.compat_musa", "-p", "no:cacheprovider"]
    own = ["-c", os.devnull, "--rootdir", str(directory), "-rs"]  # not this project's settings
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *own, *arguments], cwd=directory, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{directory}{os.pathsep}{ROOT}"}, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write(directory: Path, name: str, reason: str = "CUDA is not available", condition: str = "True") -> Path:
    path = directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(GUARDED.format(reason=reason, condition=condition), encoding="utf-8")
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_pinned_guard_is_lifted_on_mthreads(tmp_path):
    write(tmp_path, FFT)
    out = run(tmp_path)
    assert "2 passed" in out and "skipped" not in out
    assert f"COMPAT_MUSA lifted 'CUDA is not available' from {FFT}::test_perf[1], {FFT}::test_perf[2]" in out


@pytest.mark.parametrize("vendor", ["nvidia", "ascend", "amd", "MTHREADS", "mthreads-like"])
def test_it_is_not_active_on_another_vendor(tmp_path, vendor):
    write(tmp_path, FFT)
    out = run(tmp_path, vendor=vendor)
    assert "2 skipped" in out and "COMPAT_MUSA" not in out


def test_it_is_not_active_without_flag_gems(tmp_path):
    edit(write(tmp_path, FFT), "import flag_gems, pytest", "import pytest")
    out = run(tmp_path)
    assert "2 skipped" in out and "COMPAT_MUSA" not in out


@pytest.mark.parametrize("name", ["benchmark/test_attention.py", "tests/test_fft.py", "benchmark/test_fft_ops.py"])
def test_another_file_is_left_alone_and_named(tmp_path, name):
    write(tmp_path, name)
    out = run(tmp_path)
    assert "2 skipped" in out and "lifted" not in out
    assert f"COMPAT_MUSA left alone: {name}::test_perf[1] (CUDA is not available)" in out


@pytest.mark.parametrize("reason", ["CUDA required", "CUDA is not available.", "cuda is not available"])
def test_another_reason_in_the_same_file_is_left_alone_and_named(tmp_path, reason):
    write(tmp_path, FFT, reason=reason)
    out = run(tmp_path)
    assert "2 skipped" in out and f"COMPAT_MUSA left alone: {FFT}::test_perf[1] ({reason})" in out


def test_a_guard_that_does_not_skip_is_not_mentioned(tmp_path):
    write(tmp_path, FFT, condition="False")
    assert "COMPAT_MUSA" not in run(tmp_path)


def test_a_guard_in_text_form_is_pytests_own_to_judge(tmp_path):
    write(tmp_path, FFT, condition="'True'")
    out = run(tmp_path)
    assert "2 skipped" in out and "COMPAT_MUSA" not in out


def test_a_second_guard_on_the_same_test_still_skips_it(tmp_path):
    mark = "@pytest.mark.param"
    edit(write(tmp_path, FFT), mark, f"@pytest.mark.skipif(True, reason='Issue 4131')\n{mark}")
    out = run(tmp_path)
    assert "2 skipped" in out and "COMPAT_MUSA lifted" in out
    assert f"COMPAT_MUSA left alone: {FFT}::test_perf[1] (Issue 4131)" in out


def test_a_guard_on_the_whole_module_is_lifted_too(tmp_path):
    write(tmp_path, FFT).write_text(
        "import flag_gems, pytest\n"
        "pytestmark = [pytest.mark.fft, pytest.mark.skipif(True, reason='CUDA is not available')]\n"
        "def test_one(): pass\ndef test_two(): pass\n", encoding="utf-8",
    )  # fmt: skip
    out = run(tmp_path, "-W", "ignore::pytest.PytestUnknownMarkWarning")
    assert "2 passed" in out


def test_the_lines_reach_run_log_when_pytest_captures_output(tmp_path):
    write(tmp_path, FFT)
    assert "COMPAT_MUSA lifted" in run(tmp_path, "--capture=fd")
    assert "COMPAT_MUSA lifted" in run(tmp_path, "-s")
