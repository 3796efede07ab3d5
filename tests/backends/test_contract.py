"""What every backend must be, whoever adds one."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness import backends, samplers
from harness.backends import Backend, Device
from tests.backends import fakes

TARGETS = {"aot": "cuda:90"}
each = pytest.mark.parametrize("backend", backends.ALL, ids=backends.NAMES)


@pytest.fixture(autouse=True)
def fake_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fakes.path_with_fakes())
    for backend in backends.ALL:
        for name in backend.visible_env:
            monkeypatch.delenv(name, raising=False)


def devices(backend: Backend) -> tuple[Device, ...]:
    return backend.devices(TARGETS.get(backend.name, ""))


@each
def test_a_backend_is_found_by_its_name_and_every_alias(backend: Backend) -> None:
    assert {backends.get(name) for name in (backend.name, *backend.aliases)} == {backend}


def test_no_two_backends_share_a_name() -> None:
    names = [name for backend in backends.ALL for name in (backend.name, *backend.aliases)]
    assert len(names) == len(set(names))


def test_the_aliases_are_the_documented_ones() -> None:
    aliases = {alias: backend.name for backend in backends.ALL for alias in backend.aliases}
    assert aliases == {"nvidia": "cuda", "mthreads": "musa", "amd": "rocm", "hip": "rocm", "npu": "ascend"}


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    with pytest.raises(backends.BackendError, match=r"'cude' is unknown; use one of cuda = nvidia, musa = mthreads"):
        backends.get("cude")


@each
def test_a_backend_is_frozen(backend: Backend) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        backend.capture = True  # type: ignore[misc]


@each
def test_every_device_is_found_by_its_own_uuid_and_only_by_it(backend: Backend) -> None:
    found = devices(backend)
    assert found and len({device.uuid for device in found}) == len(found)
    assert [backend.resolve(device.uuid, TARGETS.get(backend.name, "")) for device in found] == list(found)


@each
def test_every_device_has_a_model_and_a_value_for_the_visible_variables(backend: Backend) -> None:
    assert all(device.model and device.visible for device in devices(backend))


@each
def test_the_devices_variables_leave_exactly_that_device_visible(backend: Backend) -> None:
    for device in devices(backend)[:2]:
        environ = dict.fromkeys(backend.visible_env, device.visible)
        target = TARGETS.get(backend.name, "")
        assert backend.resolve(device.uuid, target, environ=environ) == device
        assert not backend.visible_env or backend.devices(target, environ=environ) == (device,)


@each
def test_a_missing_tool_is_an_error_with_a_way_out(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if not backend.tool:
        assert devices(backend)
        return
    with pytest.raises(backends.DeviceError, match="is not on PATH") as caught:
        devices(backend)
    assert str(caught.value).endswith(backend.remedy)


@each
def test_graph_off_never_captures(backend: Backend) -> None:
    planned = backends.instrument(backend, "off", TARGETS.get(backend.name, ""))
    assert planned.timer == ("compile" if backend.name == "aot" else "direct")


@each
def test_graph_auto_follows_the_declared_capability(backend: Backend) -> None:
    planned = backends.instrument(backend, "auto", TARGETS.get(backend.name, ""))
    assert (planned.timer == "cuda_graph") is backend.capture


@each
def test_graph_require_is_refused_without_the_capability(backend: Backend) -> None:
    target = TARGETS.get(backend.name, "")
    if backend.capture:
        assert backends.instrument(backend, "require", target).timer == "cuda_graph"
        return
    with pytest.raises(backends.BackendError, match=f"backend {backend.name} cannot capture; use 'auto' or 'off'"):
        backends.instrument(backend, "require", target)


@each
def test_the_planned_l2_state_belongs_to_the_planned_timer(backend: Backend) -> None:
    expected = {"compile": "none", "direct": "flushed", "cuda_graph": "warm"}
    for graph in ("auto", "off"):
        planned = backends.instrument(backend, graph, TARGETS.get(backend.name, ""))
        assert planned.l2 == expected[planned.timer]


@each
def test_a_flushed_cache_is_planned_for_every_timer_of_a_device(backend: Backend) -> None:
    for graph in ("auto", "off"):
        planned = backends.instrument(backend, graph, TARGETS.get(backend.name, ""), "flushed")
        assert planned.l2 == ("none" if planned.timer == "compile" else "flushed")


@each
def test_the_planned_plugins_end_with_the_four_that_every_target_loads(backend: Backend) -> None:
    planned = backends.instrument(backend, "auto", TARGETS.get(backend.name, ""))
    common = ("identity", "autotune", "variants", "timing")
    assert planned.plugins == backend.plugins + tuple(f"harness.plugins.{name}" for name in common)


@each
def test_an_instrument_carries_the_backends_facts(backend: Backend) -> None:
    planned = backends.instrument(backend, "auto", TARGETS.get(backend.name, ""))
    assert (planned.backend, planned.runtime, planned.visible_env, planned.sampler) == (
        backend.name, backend.runtime, backend.visible_env, backend.sampler
    )  # fmt: skip


@each
def test_a_declared_sampler_exists_and_reads_every_device(backend: Backend) -> None:
    if not backend.sampler:
        assert backend.name == "aot"
        return
    found = devices(backend)
    sampler = samplers.open_sampler(backend.sampler, found)
    readings = samplers.align(found, sampler.read())
    assert [reading.uuid for reading in readings] == [device.uuid for device in found]
    assert all(reading.power_w for reading in readings)


@each
def test_an_unknown_capture_error_is_fatal(backend: Backend) -> None:
    assert backend.capture_texts.classify("something nobody has seen yet") == "fatal"


@each
def test_a_backend_describes_itself_in_one_line(backend: Backend) -> None:
    text = backends.describe(backend)
    assert text.startswith(backend.name) and "\n" not in text
