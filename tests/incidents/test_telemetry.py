"""Incidents of telemetry (facts/incidents.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness.samplers import mthreads, nvidia
from harness.telemetry import COLUMNS
from tests.backends import fakes

ROOT = Path(__file__).parents[2]
NO_NVML = ROOT / "tests" / "fixtures" / "telemetry" / "no_nvml"
ENV = {"PATH": fakes.path_with_fakes(), "PYTHONPATH": f"{NO_NVML}{os.pathsep}{ROOT}"}
SAMPLING = [sys.executable, "-m", "harness.telemetry", "--backend", "cuda", "--interval", "0.01", "--run"]


def test_a_closed_stdout_ends_the_sampler_without_a_word():
    """`| head` left two BrokenPipe tracebacks in telemetry.err: the print's, and the interpreter's flush at exit."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(SAMPLING, env=ENV, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_reader_that_leaves_in_the_middle_ends_the_sampler_quietly():
    with subprocess.Popen(SAMPLING, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().decode().strip() == ",".join(COLUMNS)
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(60) == 0
    assert "Traceback" not in errors and "BrokenPipe" not in errors


def test_the_mthreads_power_key_with_its_trailing_space_is_read():
    assert '"Power Draw "' in fakes.text("mthreads_gmi.json")
    assert mthreads.parse(fakes.text("mthreads_gmi.json"))[0].power_w == 96.66


def test_a_device_list_samples_every_device():
    """The device flag was once dropped together with its placeholder, and one device answered for eight."""
    done = subprocess.run([*SAMPLING, "--devices", "0,1", "--count", "1"], env=ENV, capture_output=True, check=True)
    assert [line.split(",")[1] for line in done.stdout.decode().splitlines()[1:]] == ["0", "1"]


def test_not_supported_is_neither_a_crash_nor_a_zero():
    """netdata #4892 and others: "[Not Supported]" broke the parser; a clamp to 0 reads as an idle device."""
    reading = nvidia.parse(fakes.text("nvidia_smi_absent.csv"))[0]
    assert (reading.sm_clock_mhz, reading.power_w) == (1410, None)


def test_many_rows_are_never_read_as_one_number():
    """MaxContextFinder #6: the output of several GPUs was parsed as one value."""
    assert len({reading.uuid for reading in nvidia.parse(fakes.text("nvidia_smi.csv"))}) == 2


def test_a_decimal_comma_is_a_named_error_not_a_shifted_row():
    """OpenRA #20889 and others: under a comma locale "312,45" moves every later column by one."""
    try:
        nvidia.parse(fakes.text("nvidia_smi.csv").replace("312.45", "312,45"))
    except nvidia.ToolError as error:
        assert "312, 45" in str(error)
    else:
        raise AssertionError("a row with nine fields was accepted")
