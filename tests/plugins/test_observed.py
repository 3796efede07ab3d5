"""What a target sees of a driver that is known to the vendor's tool only."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from harness.plugins import observed
from tests.backends import fakes


@pytest.fixture
def hip(monkeypatch):
    """A torch of ROCm, on a kernel whose amdgpu says no version."""
    monkeypatch.setattr(observed, "_torch_version", lambda name: "6.4" if name == "hip" else "")
    monkeypatch.setattr(observed, "_first_line", lambda path: "")


@pytest.mark.parametrize(("runtime", "version"), [("musa", "3.3.5-server"), ("npu", "25.5.2"), ("cuda", "6.2.4")])
def test_a_drivers_version_is_the_vendors_own(monkeypatch, hip, runtime, version):
    monkeypatch.setenv("PATH", fakes.path_with_fakes())
    assert observed.driver_version(runtime) == version


def test_the_kernels_own_word_on_amdgpu_comes_first(monkeypatch, hip):
    monkeypatch.setattr(observed, "_first_line", lambda path: "6.10.5")
    monkeypatch.setenv("PATH", fakes.path_with_fakes())
    assert observed.driver_version("cuda") == "6.10.5"


def test_a_driver_is_unknown_where_the_tool_is_missing_hangs_or_does_not_say(monkeypatch, hip, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert {observed.driver_version(runtime) for runtime in ("musa", "npu", "cuda", "meta")} == {""}
    tool = tmp_path / "mthreads-gmi"
    for body in ('echo \'{"Driver Version": "N/A"}\'', "echo driver failure; exit 4", "exec /bin/sleep 30"):
        tool.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        tool.chmod(tool.stat().st_mode | stat.S_IEXEC)
        monkeypatch.setattr(observed, "TOOL_TIMEOUT_S", 0.2 if "sleep" in body else 20.0)
        assert observed.driver_version("musa") == ""
