"""What every backend must be, whoever adds one."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Literal

import pytest

from harness import backends, codec, samplers, telemetry
from harness.backends import Backend, Device, DeviceError
from harness.plan import uncaptured
from harness.records import Instrument
from tests.backends import fakes

TARGETS = {"aot": "cuda:90"}
each = pytest.mark.parametrize("backend", backends.ALL, ids=backends.NAMES)


@pytest.fixture(autouse=True)
def fake_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", fakes.path_with_fakes())
    for backend in backends.ALL:
        for name in (*backend.visible_env, *backend.renumbering):
            monkeypatch.delenv(name, raising=False)


def plan(backend: Backend, graph: backends.Graph = "auto", l2: Literal["default", "flushed"] = "default") -> Instrument:
    return backends.instrument(backend, graph, TARGETS.get(backend.name, ""), l2)


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
def test_a_fence_of_several_devices_on_the_parent_leaves_exactly_those_and_is_named(backend: Backend) -> None:
    if not backend.visible_env:
        assert backend.name == "aot"
        return
    first, last, *_ = wanted = devices(backend)
    # The order of a fence is its owner's; lanes are found by name, so that of the tool is kept.
    both = dict.fromkeys(backend.visible_env, f"{last.visible},{first.visible}")
    assert backend.devices(environ=both) == (first, last)
    only = dict.fromkeys(backend.visible_env, last.visible)
    assert backends.resolve_all([str(last.index)], backend.devices(environ=only)) == (last,)
    with pytest.raises(DeviceError, match=rf"does not exist here \(with {backend.visible_env[0]}={last.visible}"):
        backend.resolve(wanted[0].uuid, environ=only)


@each
def test_a_list_of_devices_is_a_list_of_lanes_in_its_own_order(backend: Backend) -> None:
    first, second, *_ = found = devices(backend)
    assert backends.resolve_all([str(second.index), first.uuid], found) == (second, first)


@each
def test_a_variable_that_renumbers_devices_is_refused_with_the_one_to_use(backend: Backend) -> None:
    assert backend.renumbering == (("ROCR_VISIBLE_DEVICES",) if backend.name == "rocm" else ())
    for name in backend.renumbering:
        with pytest.raises(DeviceError, match=rf"{name}=1 renumbers the devices that {backend.visible_env[0]} names"):
            backend.resolve("0", environ={name: "1"})


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
    planned = plan(backend, "off")
    assert planned.timer == ("compile" if backend.name == "aot" else "direct")


@each
def test_graph_auto_follows_the_declared_capability(backend: Backend) -> None:
    planned = plan(backend)
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
        planned = plan(backend, graph)
        assert planned.l2 == expected[planned.timer]


@each
def test_a_flushed_cache_is_planned_for_every_timer_of_a_device(backend: Backend) -> None:
    for graph in ("auto", "off"):
        planned = plan(backend, graph, "flushed")
        assert planned.l2 == ("none" if planned.timer == "compile" else "flushed")


@each
def test_the_planned_plugins_end_with_those_that_every_target_loads(backend: Backend) -> None:
    planned = plan(backend)
    common = ("identity", "lease", "autotune", "variants", "timing")
    assert planned.plugins == backend.plugins + tuple(f"harness.plugins.{name}" for name in common)


@each
def test_every_planned_plugin_is_a_module_that_pytest_can_load(backend: Backend) -> None:
    for name in plan(backend).plugins:
        module = importlib.import_module(name)
        hooks = [hook for hook in vars(module) if hook.startswith("pytest_")]
        assert hooks, f"{name} has no hook: pytest would load it, and nothing would happen"


@each
def test_the_device_module_is_set_up_first_wherever_there_is_one(backend: Backend) -> None:
    planned = plan(backend).plugins
    assert (planned[0] == "harness.plugins.device") is (backend.runtime != "meta")
    assert planned.count("harness.plugins.device") == (backend.runtime != "meta")


@each
def test_an_instrument_carries_the_backends_facts(backend: Backend) -> None:
    planned = plan(backend)
    assert (planned.backend, planned.runtime, planned.visible_env, planned.sampler) == (
        backend.name, backend.runtime, backend.visible_env, backend.sampler
    )  # fmt: skip


@each
def test_an_instrument_carries_the_vendors_own_wordings_through_a_cells_file(backend: Backend) -> None:
    planned = plan(backend)
    assert planned.capture_texts == backend.capture_texts
    assert codec.loads(Instrument, codec.dumps(planned), "cell.instrument") == planned


@each
def test_a_backend_that_captures_has_wordings_for_it_and_no_other_has(backend: Backend) -> None:
    texts = backend.capture_texts
    assert bool(texts.recoverable) is bool(texts.poisoned) is backend.capture
    every = (*texts.recoverable, *texts.fatal, *texts.poisoned)
    assert len(set(every)) == len(every) and all(text.strip() == text or text.endswith(" ") for text in every)


@each
def test_each_wording_is_classified_as_declared_whatever_surrounds_it(backend: Backend) -> None:
    texts = backend.capture_texts
    for kind in ("recoverable", "fatal", "poisoned"):
        for text in getattr(texts, kind):
            assert texts.classify(f"RuntimeError: {backend.name.upper()} error: {text}\nmore") == kind


@each
def test_an_operator_on_the_deny_list_is_planned_direct_and_flushed(backend: Backend) -> None:
    planned = plan(backend)
    denied = uncaptured(planned)
    assert denied.timer == ("compile" if backend.name == "aot" else "direct")
    assert denied.l2 == ("none" if backend.name == "aot" else "flushed")
    assert dataclasses.replace(denied, timer=planned.timer, l2=planned.l2) == planned


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
def test_a_list_of_devices_is_sampled_in_full_and_every_line_has_every_column(backend: Backend) -> None:
    """mthreads-gmi takes no list: its flag was once dropped with its placeholder, and one device answered for all."""
    if not backend.sampler:
        return
    for wanted in (devices(backend), devices(backend)[::-1], devices(backend)[-1:]):
        sample = samplers.open_sampler(backend.sampler, wanted).read()
        lines = [telemetry.row(1.0, reading).split(",") for reading in samplers.align(wanted, sample)]
        assert [line[2] for line in lines] == [device.uuid for device in wanted]
        assert {len(line) for line in lines} == {len(telemetry.COLUMNS)}
        assert all(line[telemetry.COLUMNS.index("power_w")] for line in lines)


@each
def test_an_unknown_capture_error_is_fatal(backend: Backend) -> None:
    assert backend.capture_texts.classify("something nobody has seen yet") == "fatal"


@each
def test_a_backend_describes_itself_in_one_line(backend: Backend) -> None:
    text = backends.describe(backend)
    assert text.startswith(backend.name) and "\n" not in text
