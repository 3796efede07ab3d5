"""Vendor facts (L1): the five backends, found by name, and the instrument that the plan copies into cells."""

from __future__ import annotations

from typing import Literal

from harness.backends.aot import AOT, check_target
from harness.backends.ascend import ASCEND
from harness.backends.backend import Backend
from harness.backends.cuda import CUDA
from harness.backends.device import Device, DeviceError, resolve, resolve_all
from harness.backends.musa import MUSA
from harness.backends.rocm import ROCM
from harness.backends.tool import RunTool, ToolError, asked_once, run_tool
from harness.records import CaptureTexts, Instrument, Refusal

__all__ = [
    "ALL", "NAMES", "Backend", "BackendError", "CaptureTexts", "Device", "DeviceError", "RunTool", "ToolError",
    "asked_once", "describe", "get", "instrument", "resolve", "resolve_all", "run_tool",
]  # fmt: skip

ALL = (CUDA, MUSA, ROCM, ASCEND, AOT)
NAMES = tuple(backend.name for backend in ALL)
#: What every target process loads, in this order, after the backend's own. The only copy of this list: a worker with
#: a copy of its own once ran a sealed campaign without the timing plugin and never said so.
PLUGINS = tuple(f"harness.plugins.{name}" for name in ("identity", "lease", "autotune", "variants", "timing"))

Graph = Literal["auto", "off", "require"]


class BackendError(Refusal):
    """A backend that is unknown, or asked for what it does not declare."""


def get(name: str) -> Backend:
    """The backend of that name or alias."""
    for backend in ALL:
        if name == backend.name or name in backend.aliases:
            return backend
    known = ", ".join(" = ".join((backend.name, *backend.aliases)) for backend in ALL)
    raise BackendError(f"backend {name!r} is unknown; use one of {known}")


def instrument(
    backend: Backend, graph: Graph, target: str, l2: Literal["default", "flushed"] = "default"
) -> Instrument:
    """How cells on `backend` measure: planned timer, its L2 state (`measure.l2`), plugins in order, sampler."""
    if backend is AOT:
        check_target(target)
    elif target:
        raise BackendError(f"target {target!r} is for backend aot; backend {backend.name} compiles for its own device")
    timer = _timer(backend, graph)
    return Instrument(
        backend=backend.name,
        target=target,
        visible_env=backend.visible_env,
        runtime=backend.runtime,
        timer=timer,
        l2=_l2(timer, l2),
        plugins=backend.plugins + PLUGINS,
        sampler=backend.sampler,
        capture_texts=backend.capture_texts,
    )


def _l2(timer: str, wanted: str) -> Literal["none", "warm", "flushed"]:
    """do_bench always flushes, a replayed graph where it is asked to, and a compiler has no use for the cache."""
    if timer == "compile":
        return "none"
    return "warm" if timer == "cuda_graph" and wanted == "default" else "flushed"


def describe(backend: Backend) -> str:
    """One line for people."""
    also = f" (also {', '.join(backend.aliases)})" if backend.aliases else ""
    timer = _timer(backend, "auto")
    variables = ", ".join(backend.visible_env) or "none"
    sampler = backend.sampler or "none"
    return f"{backend.name}{also}: timer {timer}, device variables {variables}, telemetry {sampler}"


def _timer(backend: Backend, graph: Graph) -> Literal["compile", "direct", "cuda_graph"]:
    if graph == "require" and not backend.capture:
        raise BackendError(
            f"measure.graph is 'require', but backend {backend.name} cannot capture; use 'auto' or 'off'"
        )
    if backend is AOT:
        return "compile"
    return "cuda_graph" if backend.capture and graph != "off" else "direct"
