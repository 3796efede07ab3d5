"""What differs from vendor to vendor: how devices are listed, and aot's targets."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from harness import backends
from harness.backends import ToolError, ascend, rocm, run_tool, tool
from harness.backends.aot import TargetError
from tests.backends import fakes


def test_ascend_numbers_are_the_npus_where_each_has_one_chip() -> None:
    assert [(chip.index, chip.uuid) for chip in ascend.chips(fakes.text("npu_smi.txt"))] == [
        (0, "pci-0000:66:00.0-chip-0"), (5, "pci-0000:C1:00.0-chip-0")
    ]  # fmt: skip


def test_ascend_chips_of_one_npu_have_the_printed_device_numbers() -> None:
    assert [(chip.index, chip.power_w) for chip in ascend.chips(fakes.text("npu_smi_310p.txt"))] == [
        (0, "NA"),
        (1, "NA"),
    ]


def test_ascend_chips_of_one_board_are_two_devices() -> None:
    found = backends.get("ascend").devices(run=fakes.answering({"npu-smi": fakes.text("npu_smi_310p.txt")}), environ={})
    assert len({device.uuid for device in found}) == 2


def test_ascend_chips_without_device_numbers_are_counted_where_npu_numbers_repeat() -> None:
    text = (
        fakes.text("npu_smi_310p.txt").replace("| 0       0 ", "| 0         ").replace("| 1       1 ", "| 1         ")
    )
    assert [chip.index for chip in ascend.chips(text)] == [0, 1]


def test_mthreads_devices_without_uuid_and_bus_address_are_told_apart_by_index() -> None:
    text = '{"GPU": [{"Index": 0, "GPU UUID ": "N/A"}, {"Index": "2", "GPU UUID": "N/A", "PCI": {"Bus ID": "N/A"}}]}'
    found = backends.get("musa").devices(run=fakes.answering({"mthreads-gmi": text}), environ={})
    assert [(device.index, device.uuid) for device in found] == [(0, "mthreads-index-0"), (2, "mthreads-index-2")]


def test_rocm_names_devices_as_the_runtime_does() -> None:
    found = backends.get("rocm").devices(run=fakes.answering({"rocm-smi": fakes.text("rocm_smi.json")}), environ={})
    assert [device.uuid for device in found] == ["GPU-719d2a6e8c0f4b13", "GPU-5b0c77de91a2f384"]


def test_rocm_falls_back_to_amd_smi() -> None:
    found = backends.get("rocm").devices(
        run=fakes.answering({"amd-smi list": fakes.text("amd_smi_list.json")}), environ={}
    )
    assert [(device.index, device.uuid[:4]) for device in found] == [(0, "719d"), (1, "5b0c")]


def test_rocm_boards_without_unique_id_are_named_by_bus() -> None:
    assert rocm.identity(2, {"Unique ID": "N/A", "PCI Bus": "0000:2F:00.0"}) == "pci-0000:2F:00.0"


def test_a_tool_that_prints_no_json_is_named_with_what_it_printed() -> None:
    with pytest.raises(backends.DeviceError, match="mthreads-gmi -q --json` printed no GPU list: 'segfault'"):
        backends.get("musa").devices(run=fakes.answering({"mthreads-gmi": "segfault"}), environ={})


@pytest.mark.parametrize("target", ["cuda:90", "cuda:100", "hip:gfx942", "hip:gfx90a", "hip:gfx1100"])
def test_aot_compiles_for_named_targets(target: str) -> None:
    assert backends.instrument(backends.get("aot"), "auto", target).target == target
    assert backends.get("aot").resolve("0", target).model == target


@pytest.mark.parametrize("target", ["", "cuda", "cuda:sm_90", "cuda:9", "hip:90", "hip:gfx", "xpu:1", "cuda:90 "])
def test_aot_refuses_any_other_target(target: str) -> None:
    with pytest.raises(TargetError, match="is none that aot compiles for; use cuda:90 or hip:gfx942"):
        backends.instrument(backends.get("aot"), "auto", target)


def test_a_target_for_a_backend_with_a_device_is_refused() -> None:
    with pytest.raises(backends.BackendError, match="target 'cuda:90' is for backend aot"):
        backends.instrument(backends.get("cuda"), "auto", "cuda:90")


def test_aot_lanes_are_the_same_for_every_target() -> None:
    """Two campaigns disturb each other whatever they compile for, so they must ask for the same lease."""
    aot = backends.get("aot")
    assert aot.resolve("3", "cuda:90").uuid == aot.resolve("3", "hip:gfx942").uuid == "aot-lane-3"


def test_aot_plans_its_plugin_first() -> None:
    assert backends.instrument(backends.get("aot"), "auto", "cuda:90").plugins[0] == "harness.plugins.aot"


def fake(directory: Path, script: str) -> str:
    path = directory / "vendor-smi"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_failing_tool_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"vendor-smi -L` ended with 6: No devices were found"):
        run_tool([fake(tmp_path, "echo No devices were found; exit 6"), "-L"])


def test_a_tool_that_may_not_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "vendor-smi").write_text("not a program", encoding="utf-8")
    with pytest.raises(ToolError, match=r"vendor-smi cannot be run \(Permission denied\)"):
        run_tool([str(tmp_path / "vendor-smi")])


def test_a_hanging_tool_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "TIMEOUT_S", 0.2)
    with pytest.raises(ToolError, match="gave no answer in"):
        run_tool([fake(tmp_path, "exec sleep 30")])


def test_tools_run_without_a_decimal_comma(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert run_tool([fake(tmp_path, "echo $LC_ALL")]) == "C\n"
