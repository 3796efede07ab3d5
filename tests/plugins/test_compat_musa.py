"""compat_musa, in a pytest of its own beside a fake flag_gems."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
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


def write(directory: Path, name: str, reason: str = "CUDA is not available", condition: str = "True") -> None:
    (directory / name).write_text(GUARDED.format(reason=reason, condition=condition), encoding="utf-8")


def test_the_pinned_guard_is_lifted_on_mthreads(tmp_path):
    write(tmp_path, "test_fft.py")
    out = run(tmp_path)
    assert "2 passed" in out and "skipped" not in out
    assert "COMPAT_MUSA lifted 'CUDA is not available' from test_fft.py::test_perf[1], test_fft.py::test_perf[2]" in out


def test_it_is_not_active_on_another_vendor(tmp_path):
    write(tmp_path, "test_fft.py")
    out = run(tmp_path, vendor="nvidia")
    assert "2 skipped" in out and "COMPAT_MUSA" not in out


def test_it_is_not_active_without_flag_gems(tmp_path):
    write(tmp_path, "test_fft.py")
    text = (tmp_path / "test_fft.py").read_text(encoding="utf-8").replace("import flag_gems, pytest", "import pytest")
    (tmp_path / "test_fft.py").write_text(text, encoding="utf-8")
    out = run(tmp_path)
    assert "2 skipped" in out and "COMPAT_MUSA" not in out


def test_another_file_is_left_alone_and_named(tmp_path):
    write(tmp_path, "test_attention.py")
    out = run(tmp_path)
    assert "2 skipped" in out
    assert "COMPAT_MUSA left alone: test_attention.py::test_perf[1] (CUDA is not available)" in out


def test_another_reason_in_the_same_file_is_left_alone_and_named(tmp_path):
    write(tmp_path, "test_fft.py", reason="CUDA required")
    out = run(tmp_path)
    assert "2 skipped" in out and "COMPAT_MUSA left alone: test_fft.py::test_perf[1] (CUDA required)" in out


def test_a_guard_that_does_not_skip_is_not_mentioned(tmp_path):
    write(tmp_path, "test_fft.py", condition="False")
    assert "COMPAT_MUSA" not in run(tmp_path)


def test_a_second_guard_on_the_same_test_still_skips_it(tmp_path):
    text = GUARDED.format(reason="CUDA is not available", condition="True")
    second = text.replace("@pytest.mark.param", "@pytest.mark.skipif(True, reason='Issue 4131')\n@pytest.mark.param")
    (tmp_path / "test_fft.py").write_text(second, encoding="utf-8")
    out = run(tmp_path)
    assert "2 skipped" in out and "COMPAT_MUSA lifted" in out
    assert "COMPAT_MUSA left alone: test_fft.py::test_perf[1] (Issue 4131)" in out


def test_a_guard_on_the_whole_module_is_lifted_too(tmp_path):
    (tmp_path / "test_fft.py").write_text(
        "import flag_gems, pytest\n"
        "pytestmark = [pytest.mark.fft, pytest.mark.skipif(True, reason='CUDA is not available')]\n"
        "def test_one(): pass\ndef test_two(): pass\n", encoding="utf-8",
    )  # fmt: skip
    out = run(tmp_path, "-W", "ignore::pytest.PytestUnknownMarkWarning")
    assert "2 passed" in out


def test_the_lines_reach_run_log_when_pytest_captures_output(tmp_path):
    write(tmp_path, "test_fft.py")
    assert "COMPAT_MUSA lifted" in run(tmp_path, "--capture=fd")
    assert "COMPAT_MUSA lifted" in run(tmp_path, "-s")
