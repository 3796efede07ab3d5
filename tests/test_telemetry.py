"""Telemetry: parsers on recorded texts, the CSV, its quiet ends, its summary."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

from harness import backends, samplers, telemetry
from harness.backends import Device, ToolError
from harness.samplers import Reading, Sample, SamplerMissing, align, amd, mthreads, npu, number, nvidia
from tests.backends import fakes

ROOT = Path(__file__).parents[1]
HEADER = "time_s,index,uuid,sm_clock_mhz,mem_clock_mhz,temp_c,power_w,util_pct,throttle"
H200 = Device(0, fakes.H200_0, "NVIDIA H200", fakes.H200_0)
MUSA_0, MUSA_3 = "399282a8-ba01-1475-893c-2eeca9e302f5", "pci-00000000:3a:00.0"
AMD_0, AMD_1 = "GPU-719d2a6e8c0f4b13", "GPU-5b0c77de91a2f384"
NPU_0, NPU_5 = "pci-0000:66:00.0-chip-0", "pci-0000:C1:00.0-chip-0"


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("36C", 36), ("1888MHz", 1888), ("477.68W", 477.68), ("1980 MHz", 1980), ("97 %", 97), ("(800Mhz)", 800),
     (142, 142), ("32.0", 32), (" 41 ", 41), ("0%", 0)],
)  # fmt: skip
def test_a_number_is_read_with_and_without_its_unit(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    "text",
    ["N/A", "[N/A]", "NA", "[Not Supported]", "[Insufficient Permissions]", "[Unknown Error]", "ERR!", "", None, True,
     "81920MiB", "0x4", "1,5"],
)  # fmt: skip
def test_what_is_no_number_is_absent_and_never_zero(text):
    assert number(text) is None


# -- parsers ---------------------------------------------------------------------------------------------------------


def test_nvidia_smi_rows():
    assert nvidia.parse(fakes.text("nvidia_smi.csv")) == (
        Reading(0, fakes.H200_0, 1980, 3201, 41, 312.45, 97, "sw_power_cap"),
        Reading(1, fakes.H200_1, 345, 3201, 29, 76.1, 0, "gpu_idle"),
    )


def test_nvidia_smi_rows_with_header_and_units():
    assert nvidia.parse(fakes.text("nvidia_smi_units.csv")) == (
        Reading(0, fakes.H200_0, 1980, 3201, 41, 312.45, 97, "sw_power_cap|sw_thermal_slowdown"),
    )


def test_nvidia_smi_words_for_absent_become_empty():
    first, second = nvidia.parse(fakes.text("nvidia_smi_absent.csv"))
    assert (first.mem_clock_mhz, first.power_w, first.util_pct, first.throttle) == (None, None, None, "")
    assert (second.sm_clock_mhz, second.temp_c, second.util_pct, second.throttle) == (None, None, 0, "none")


def test_unknown_reason_bits_are_kept():
    assert nvidia.reason_names(0x4 | 0x200) == "sw_power_cap|0x200"


@pytest.mark.parametrize(
    "row", ["0, GPU-1, 1980, 3201, 41, 312,45, 97, 0x0, 1", "No devices were found", "0, GPU-1, 1980"]
)
def test_a_row_of_another_shape_is_named(row):
    with pytest.raises(ToolError, match="nvidia-smi row is not"):
        nvidia.parse(row)


def test_mthreads_keys_with_stray_spaces_and_values_with_units():
    first, second = mthreads.parse(fakes.text("mthreads_gmi.json"))
    assert first == Reading(0, "399282a8-ba01-1475-893c-2eeca9e302f5", 1750, 2500, 27, 96.66, 0)
    assert second == Reading(3, "pci-00000000:3a:00.0", None, None, None, 477.68, 98)


def test_rocm_smi_of_two_releases():
    first, second = amd.parse_rocm_smi(fakes.text("rocm_smi.json"))
    assert first == Reading(0, "GPU-719d2a6e8c0f4b13", 800, 1600, 35, 89, 10)
    assert second == Reading(1, "GPU-5b0c77de91a2f384", 2045, 1600, 31, 411, 99)


def test_amd_smi_list_form():
    first, second = amd.parse_amd_smi(fakes.text("amd_smi_metric_list.json"))
    assert first == Reading(0, "", 132, 900, 61, 142, 73)
    assert second == Reading(1, "", None, None, 45, 97, None)


def test_amd_smi_object_form_behind_a_warning():
    assert amd.parse_amd_smi(fakes.text("amd_smi_metric_rocm7.json")) == (Reading(0, "", 132, None, 61, 142, 73),)


def test_npu_smi_table_has_no_clocks():
    assert npu.parse(fakes.text("npu_smi.txt")) == (
        Reading(0, "pci-0000:66:00.0-chip-0", None, None, 41, 94.2, 0),
        Reading(5, "pci-0000:C1:00.0-chip-0", None, None, 58, 301.7, 97),
    )


def test_npu_smi_of_an_inference_card_has_no_power():
    assert [reading.power_w for reading in npu.parse(fakes.text("npu_smi_310p.txt"))] == [None, None]


# -- which device said what ------------------------------------------------------------------------------------------


def test_readings_are_matched_by_uuid_whatever_their_order():
    sample = Sample((Reading(0, "b", temp_c=1), Reading(1, "a", temp_c=2)), "")
    found = align([Device(0, "a", "m", "a"), Device(1, "b", "m", "b")], sample)
    assert [(reading.index, reading.uuid, reading.temp_c) for reading in found] == [(0, "a", 2), (1, "b", 1)]


def test_readings_without_uuid_are_matched_by_index():
    assert align([Device(1, "b", "m", "1")], Sample((Reading(0, ""), Reading(1, "", 5)), "")) == [Reading(1, "b", 5)]


def test_a_device_that_does_not_answer_is_an_empty_line():
    assert align([H200], Sample((), "")) == [Reading(0, fakes.H200_0)]


def test_two_instances_of_one_gpu_are_one_line_of_their_parent():
    pair = [Device(0, f"MIG-{n}", "m", f"MIG-{n}", parent="GPU-p") for n in (1, 2)]
    assert align(pair, Sample((Reading(0, "GPU-p", 1410),), "")) == [Reading(0, "GPU-p", 1410)]


# -- NVIDIA's two ways -----------------------------------------------------------------------------------------------


class NVMLError(Exception):
    pass


def fake_nvml(broken: str = "") -> types.ModuleType:
    """The functions of pynvml that are used; the one named `broken` is not supported."""

    def answer(name, value):
        def call(*arguments):
            if name == broken:
                raise NVMLError("Not Supported")
            return value

        return call

    module = types.ModuleType("pynvml")
    answers = {
        "nvmlInit": None, "nvmlDeviceGetHandleByUUID": "handle", "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetTemperature": 41, "nvmlDeviceGetPowerUsage": 312450,
        "nvmlDeviceGetUtilizationRates": types.SimpleNamespace(gpu=97), "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
    }  # fmt: skip
    for name, value in answers.items():
        setattr(module, name, answer(name, value))
    module.NVMLError, module.NVML_CLOCK_SM, module.NVML_CLOCK_MEM, module.NVML_TEMPERATURE_GPU = NVMLError, 1, 2, 0
    return module


def test_nvml_is_preferred(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    sampler = samplers.open_sampler("nvml", [H200], fakes.answering({}))
    assert (sampler.source, sampler.notes) == ("NVML", ())
    assert sampler.read().readings == (Reading(0, fakes.H200_0, 1980, 1980, 41, 312.45, 97, "sw_power_cap"),)


def test_what_nvml_does_not_support_is_absent_and_takes_nothing_with_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(broken="nvmlDeviceGetUtilizationRates"))
    (reading,) = samplers.open_sampler("nvml", [H200], fakes.answering({})).read().readings
    assert (reading.util_pct, reading.power_w) == (None, 312.45)


@pytest.mark.parametrize(
    ("module", "note"),
    [(None, "nvidia-ml-py is not installed"), (fake_nvml("nvmlInit"), "NVML is not used: Not Supported"),
     (fake_nvml("nvmlDeviceGetHandleByUUID"), "NVML is not used: Not Supported")],
)  # fmt: skip
def test_without_nvml_nvidia_smi_answers_and_the_note_says_why(monkeypatch, module, note):
    monkeypatch.setitem(sys.modules, "pynvml", module)
    sampler = samplers.open_sampler("nvml", [H200], fakes.answering({"nvidia-smi": fakes.text("nvidia_smi.csv")}))
    assert sampler.source == "nvidia-smi" and note in sampler.notes[0]
    assert align([H200], sampler.read())[0].power_w == 312.45


@pytest.mark.parametrize(
    ("known", "last"), [("clocks_throttle_reasons.active", "sw_power_cap"), ("utilization.gpu ", "")]
)
def test_an_older_driver_is_asked_by_the_field_it_knows(monkeypatch, known, last):
    """One unknown field fails the whole query, so an old driver would never be sampled at all."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    row = fakes.text("nvidia_smi.csv").splitlines()[0]

    def run(command):
        if known not in " ".join(command):
            raise ToolError("is not a valid field to query")
        return row if last else row.rpartition(",")[0]

    (reading,) = samplers.open_sampler("nvml", [H200], run).read().readings
    assert (reading.util_pct, reading.throttle) == (97, last)


def test_nothing_to_sample_nvidia_with_is_said_in_full(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(SamplerMissing, match="nvidia-ml-py is not installed .*; nvidia-smi is not on PATH"):
        samplers.open_sampler("nvml", [H200], fakes.answering({}))


def test_amd_smi_samples_where_rocm_smi_is_gone():
    run = fakes.answering({"amd-smi metric": fakes.text("amd_smi_metric_list.json")})
    sampler = samplers.open_sampler("rocm-smi", [Device(0, "u", "m", "0")], run)
    assert sampler.source == "amd-smi" and sampler.notes == ("rocm-smi is not on PATH",)


# -- the command -----------------------------------------------------------------------------------------------------


def command(*arguments: str, **env: str) -> tuple[list[str], dict[str, str]]:
    """A real process with fake tools on PATH; a module that cannot be imported stands in for NVML."""
    blocked = str(Path(__file__).parent / "fixtures" / "telemetry" / "no_nvml")
    full = {"PATH": fakes.path_with_fakes(), "PYTHONPATH": f"{blocked}{os.pathsep}{ROOT}", **env}
    return [sys.executable, "-m", "harness.telemetry", *arguments], full


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    line, full = command(*arguments, **env)
    return subprocess.run(line, env=full, capture_output=True, text=True, timeout=60, check=False)


def test_every_device_of_a_list_is_sampled():
    done = run("--backend", "cuda", "--devices", "0,1", "--interval", "0.01", "--count", "2", "--run")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0] == HEADER and len(lines) == 5
    assert [line.split(",")[2] for line in lines[1:]] == [fakes.H200_0, fakes.H200_1] * 2
    assert lines[1].split(",", 1)[1] == f"0,{fakes.H200_0},1980,3201,41,312.45,97,sw_power_cap"


@pytest.mark.parametrize(
    ("backend", "devices", "lines"),
    [
        ("musa", "3,0", [f"3,{MUSA_3},,,,477.68,98,", f"0,{MUSA_0},1750,2500,27,96.66,0,"]),
        ("musa", MUSA_3, [f"3,{MUSA_3},,,,477.68,98,"]),
        ("rocm", "0,1", [f"0,{AMD_0},800,1600,35,89,10,", f"1,{AMD_1},2045,1600,31,411,99,"]),
        ("ascend", "0,5", [f"0,{NPU_0},,,41,94.2,0,", f"5,{NPU_5},,,58,301.7,97,"]),
    ],
)
def test_every_device_of_a_list_is_sampled_on_every_vendor(backend, devices, lines):
    """Indices may be sparse and a UUID "N/A"; absent values are empty, and no other device's line comes along."""
    done = run("--backend", backend, "--devices", devices, "--interval", "0.01", "--count", "2", "--run")
    assert done.returncode == 0, done.stderr
    assert [line.split(",", 1)[1] for line in done.stdout.splitlines()[1:]] == lines * 2


def test_the_first_sample_is_kept_as_the_tool_gave_it():
    done = run("--backend", "musa", "--devices", "0", "--count", "2", "--interval", "0.01", "--run")
    assert "telemetry: first sample from mthreads-gmi:" in done.stderr
    assert done.stderr.count('"Power Draw ": "96.66W"') == 1


def test_the_fallback_from_nvml_is_said():
    done = run("--backend", "nvidia", "--count", "1", "--run")
    assert "telemetry: NVML is not used:" in done.stderr and "first sample from nvidia-smi:" in done.stderr


def test_absent_values_are_empty_cells():
    done = run("--backend", "npu", "--devices", "5", "--count", "1", "--run")
    assert done.stdout.splitlines()[1].split(",", 1)[1] == "5,pci-0000:C1:00.0-chip-0,,,58,301.7,97,"


def test_without_run_it_says_what_it_would_do():
    done = run("--backend", "cuda", "--devices", "0,GPU-8932", "--interval", "0.5")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout == (ROOT / "tests/golden/telemetry_intention.txt").read_text(encoding="utf-8")


def test_sigterm_ends_it_in_peace():
    line, env = command("--backend", "cuda", "--interval", "60", "--run")
    with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = [process.stdout.readline(), process.stdout.readline()]  # line-buffered: readable while it runs
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and rest == "" and first[0].strip() == HEADER and first[1].endswith("sw_power_cap\n")
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--backend", "cuda", "--devices", "7"], "telemetry: device '7' does not exist here; there is 0 = GPU-1a2b"),
        (["--backend", "aot"], "telemetry: backend aot has no device to sample"),
        (["--backend", "cude"], "telemetry: backend 'cude' is unknown; use one of"),
    ],
)
def test_what_cannot_be_sampled_is_a_reason_and_exit_3(arguments, reason):
    done = run(*arguments, "--run")
    assert done.returncode == 3 and done.stdout == "" and done.stderr.startswith(reason)
    assert done.stderr.count("\n") == 1


def test_a_missing_tool_is_a_reason_and_exit_3(tmp_path):
    done = run("--backend", "musa", "--run", PATH=str(tmp_path))
    assert done.returncode == 3 and done.stderr.startswith("telemetry: mthreads-gmi is not on PATH; install")


@pytest.mark.parametrize("interval", ["0", "-1", "nan", "inf", "fast"])
def test_a_nonsense_interval_is_a_usage_error(interval):
    done = run("--backend", "cuda", "--interval", interval, "--run")
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_a_tool_that_fails_later_is_said_once_and_does_not_end_the_sampling(capsys, monkeypatch):
    answers = iter([Sample((Reading(0, "a", 1),), "raw"), "lost", "lost", Sample((Reading(0, "a", 2),), "raw")])

    def read():
        answer = next(answers)
        if isinstance(answer, str):
            raise ToolError(f"nvidia-smi {answer}")
        return answer

    monkeypatch.setattr(telemetry.time, "sleep", lambda seconds: None)
    telemetry._sample(samplers.Sampler("nvidia-smi", read), [Device(0, "a", "m", "a")], 1.0, 4)
    out, err = capsys.readouterr()
    assert [line.split(",")[3] for line in out.splitlines()[1:]] == ["1", "2"]
    assert err.count("telemetry: nvidia-smi lost") == 1


def test_a_slow_tool_skips_instants_and_never_piles_up(monkeypatch, capsys):
    clock, slept = iter([0.0, 2.25, 3.5]), []
    monkeypatch.setattr(telemetry.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(telemetry.time, "sleep", slept.append)
    telemetry._sample(samplers.Sampler("x", lambda: Sample((), "")), [H200], 1.0, 3)
    assert slept == [0.75, 0.5]


# -- the summary -----------------------------------------------------------------------------------------------------


def summary(tmp_path, *lines: str, end: str = "\n") -> telemetry.Summary:
    path = tmp_path / "telemetry.csv"
    path.write_text("\n".join([HEADER, *lines]) + end, encoding="utf-8")
    return telemetry.summarise(path)


def test_a_summary_has_spreads_and_the_achieved_interval(tmp_path):
    found = summary(
        tmp_path, "100.0,0,a,1980,3201,40,600,99,none", "101.5,0,a,1410,3201,50,665,100,sw_power_cap|0x200",
        "103.0,0,a,1500,3201,60,650,100,gpu_idle",
    )  # fmt: skip
    assert (found.samples, found.interval_s, found.throttle) == (3, 1.5, ("0x200", "sw_power_cap"))
    assert found.sm_clock_mhz == telemetry.Spread(1410, 1630, 1980)
    assert found.temp_c == telemetry.Spread(40, 50, 60)


def test_absent_values_are_no_zeros_in_a_summary(tmp_path):
    found = summary(tmp_path, "1.0,0,a,,,41,,,", "2.0,0,a,,,43,90.5,,")
    assert found.sm_clock_mhz is None and found.throttle == ()
    assert found.power_w == telemetry.Spread(90.5, 90.5, 90.5)


def test_lines_of_two_devices_at_one_instant_are_one_sample(tmp_path):
    found = summary(tmp_path, "1.0,0,a,1,,,,,", "1.0,1,b,3,,,,,", "2.0,0,a,1,,,,,", "2.0,1,b,3,,,,,")
    assert (found.samples, found.interval_s, found.sm_clock_mhz) == (2, 1.0, telemetry.Spread(1, 2, 3))


def test_a_torn_last_line_is_not_a_sample(tmp_path):
    found = summary(tmp_path, "1.0,0,a,1980,,,,,", "2.0,0,a,19", end="")
    assert (found.samples, found.sm_clock_mhz) == (1, telemetry.Spread(1980, 1980, 1980))


def test_no_samples_is_an_answer(tmp_path):
    empty = telemetry.Summary(0, 0, None, None, None, None, None, ())
    assert telemetry.summarise(tmp_path / "absent.csv") == empty
    assert summary(tmp_path) == empty
    (tmp_path / "telemetry.csv").write_text("", encoding="utf-8")
    assert telemetry.summarise(tmp_path / "telemetry.csv") == empty


def test_another_table_is_refused(tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="other.csv: columns are a,b, expected time_s,index"):
        telemetry.summarise(path)


def test_the_columns_are_the_same_on_every_backend():
    assert ",".join(telemetry.COLUMNS) == HEADER
    assert set(samplers.SAMPLERS) == {backend.sampler for backend in backends.ALL if backend.sampler}
