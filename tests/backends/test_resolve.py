"""From what a user wrote to one device."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from harness import backends
from harness.backends import DeviceError, cuda, resolve, resolve_all
from harness.backends.device import fenced
from tests.backends import fakes

TWO = cuda.parse(fakes.text("nvidia_smi_L.txt"))
MIG = cuda.parse(fakes.text("nvidia_smi_L_mig.txt"))
OLD_MIG = cuda.parse(fakes.text("nvidia_smi_L_mig_before_r470.txt"))


@pytest.mark.parametrize("token", ["1", " 1 ", fakes.H200_1, "GPU-8932f937", "gpu-8932F937"])
def test_index_uuid_and_uuid_prefix_name_the_same_device(token: str) -> None:
    assert resolve(token, TWO).uuid == fakes.H200_1


def test_a_missing_device_is_refused_with_what_exists() -> None:
    with pytest.raises(DeviceError) as caught:
        resolve("7", TWO)
    assert str(caught.value) == (
        f"device '7' does not exist here; there is 0 = {fakes.H200_0} (NVIDIA H200), 1 = {fakes.H200_1} (NVIDIA H200)"
    )


@pytest.mark.parametrize("token", ["", " ", "-1"])
def test_a_token_that_hides_every_device_is_no_lane(token: str) -> None:
    with pytest.raises(DeviceError, match="means no device at all"):
        resolve(token, TWO)


def test_an_ambiguous_prefix_is_refused_with_its_candidates() -> None:
    with pytest.raises(DeviceError, match=r"'GPU-' is ambiguous; it fits 0 = GPU-1a2b.*, 1 = GPU-8932"):
        resolve("GPU-", TWO)


def test_a_number_is_an_index_and_never_a_uuid_prefix() -> None:
    musa = backends.get("musa").devices(
        run=fakes.answering({"mthreads-gmi": fakes.text("mthreads_gmi.json")}), environ={}
    )
    with pytest.raises(DeviceError, match="'399282' does not exist here"):
        resolve("399282", musa)
    assert resolve("399282a8", musa).index == 0


def test_sparse_indices_are_the_tools_own() -> None:
    musa = backends.get("musa").devices(
        run=fakes.answering({"mthreads-gmi": fakes.text("mthreads_gmi.json")}), environ={}
    )
    assert resolve("3", musa).uuid == "pci-00000000:3a:00.0"
    with pytest.raises(DeviceError, match="'1' does not exist here"):
        resolve("1", musa)


def test_a_device_under_two_names_is_refused() -> None:
    with pytest.raises(DeviceError, match=rf"'0' and 'GPU-1a2b' are both {fakes.H200_0}; give each lane"):
        resolve_all(["0", "GPU-1a2b"], TWO)


def test_a_list_keeps_its_order() -> None:
    assert [device.index for device in resolve_all(["1", "0"], TWO)] == [1, 0]


def test_a_mig_instance_is_found_by_its_uuid_and_knows_its_parent() -> None:
    found = resolve("MIG-377e0049", MIG)
    assert (found.model, found.parent) == ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", MIG[0].uuid)
    assert found.visible == found.uuid


def test_a_gpu_divided_into_instances_is_refused_with_them() -> None:
    with pytest.raises(DeviceError, match=r"'0' is divided into MIG instances; name one: MIG-377e.*, MIG-8b0f"):
        resolve("0", MIG)
    assert resolve("1", MIG).parent == ""


def test_the_old_mig_form_is_a_name_like_any_other() -> None:
    token = "MIG-GPU-c7b6c9a1-0f2e-4c1d-9b66-2d5d5f0a3e11/2/0"
    assert resolve(token, OLD_MIG).uuid == token


def test_the_old_mig_form_is_refused_by_a_driver_that_does_not_speak_it() -> None:
    with pytest.raises(DeviceError, match="does not exist here; there is .*MIG-377e0049"):
        resolve("MIG-GPU-c7b6c9a1-0f2e-4c1d-9b66-2d5d5f0a3e11/2/0", MIG)


@pytest.mark.parametrize(
    ("value", "indices"),
    [("1", [1]), ("1,0", [0, 1]), (fakes.H200_1, [1]), ("GPU-8932", [1]), ("", []), ("-1", []), ("NoDevFiles", []),
     ("0,-1,1", [0]), ("0,9,1", [0])],
)  # fmt: skip
def test_a_fence_is_read_as_the_runtime_reads_it(value: str, indices: list[int]) -> None:
    found = fenced(TWO, ("CUDA_VISIBLE_DEVICES",), {"CUDA_VISIBLE_DEVICES": value})
    assert [device.index for device in found] == indices


def test_a_fence_around_a_gpu_holds_its_instances() -> None:
    found = fenced(MIG, ("CUDA_VISIBLE_DEVICES",), {"CUDA_VISIBLE_DEVICES": "0"})
    assert [device.uuid[:8] for device in found] == ["GPU-c7b6", "MIG-377e", "MIG-8b0f"]


def test_a_device_beyond_the_fence_is_refused_and_the_fence_named() -> None:
    with pytest.raises(
        DeviceError, match=r"'0' does not exist here \(with CUDA_VISIBLE_DEVICES=1\); there is 1 = GPU-89"
    ):
        backends.get("cuda").resolve(
            "0", run=fakes.answering({"nvidia-smi -L": fakes.text("nvidia_smi_L.txt")}),
            environ={"CUDA_VISIBLE_DEVICES": "1"},
        )  # fmt: skip


def test_a_tool_is_asked_once_for_one_command() -> None:
    asked = []

    def tool(command: Sequence[str]) -> str:
        asked.append(list(command))
        return f"answer {len(asked)}"

    once = backends.asked_once(tool)
    assert [once(["smi", "-L"]), once(["smi", "-q"]), once(("smi", "-L"))] == ["answer 1", "answer 2", "answer 1"]
    assert asked == [["smi", "-L"], ["smi", "-q"]]
