"""Compile for a named target on a machine without it: an active Triton driver that has no device behind it.

Everything up to the launch stays Triton's own: specialization, tuning, compilation, cache, loading checks. Only the
device is missing: a binary is "loaded" under a made-up handle and a launch calls the launch hooks and returns. Times of
such launches mean nothing, and no timer here reports any. It must not know benchmarks or rows.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Mapping
from typing import Any

from harness.plugins import session

#: What the vendors' drivers report for one device of each class (bytes, count, kHz, kHz, bits). Pruning functions of
#: tuners read them, so a candidate that does not fit the real device must not fit here either.
FIGURES = ("max_shared_mem", "multiprocessor_count", "sm_clock_rate", "mem_clock_rate", "mem_bus_width")
DEVICES = {
    "cuda:80": (166912, 108, 1410000, 1593000, 5120),  # A100
    "cuda:89": (101376, 142, 2520000, 9001000, 384),  # L40S
    "cuda:90": (232448, 132, 1980000, 3201000, 6144),  # H200
    "cuda:100": (232448, 148, 1965000, 3996000, 8192),  # B200
    "hip:gfx90a": (65536, 104, 1700000, 1600000, 4096),  # MI210
    "hip:gfx942": (65536, 304, 2100000, 1300000, 8192),  # MI300X
    "hip:gfx950": (163840, 256, 2400000, 2000000, 8192),  # MI350X
}
THREADS_PER_BLOCK = 1024
REGISTERS_PER_BLOCK = 65536


class AotError(RuntimeError):
    """The named target cannot be compiled for in this interpreter."""


def pytest_load_initial_conftests() -> None:
    """Before any conftest: importing a provider may already ask for the active driver."""
    try:
        activate(session.current().cell.instrument.target)
    except AotError as error:
        raise importlib.import_module("pytest").UsageError(str(error)) from error


def activate(target: str) -> None:
    """Make `target` ("cuda:90", "hip:gfx942") the active one; AotError when this Triton cannot compile for it."""
    figures = device_figures(target)
    compiler, backends = importlib.import_module("triton.backends.compiler"), importlib.import_module("triton.backends")
    name, _, arch = target.partition(":")
    wanted = compiler.GPUTarget(name, int(arch) if arch.isdigit() else arch, int(figures["warpSize"]))
    if not any(backend.compiler.supports_target(wanted) for backend in backends.backends.values()):
        triton = importlib.import_module("triton")
        raise AotError(
            f"AOT_TARGET {target}: triton {triton.__version__} of {sys.executable} has backends "
            f"{sorted(backends.backends)}, none for {name!r}; name another target or a build that has it"
        )
    importlib.import_module("triton.runtime.driver").driver.set_active(AotDriver(wanted, figures))


def device_figures(target: str) -> Mapping[str, Any]:
    """The properties that a driver of `target` reports; AotError for a target without figures."""
    if target not in DEVICES:
        raise AotError(f"AOT_TARGET {target}: no device figures for it; known targets: {', '.join(DEVICES)}")
    figures = dict(zip(FIGURES, DEVICES[target], strict=True))
    warp = 64 if target.startswith("hip:gfx9") else 32
    return {**figures, "max_num_regs": REGISTERS_PER_BLOCK, "warpSize": warp, "arch": target.partition(":")[2]}


class AotDriver:
    """The part of Triton's driver protocol (3.4 to 3.7) that tuning, compiling and launching use."""

    def __init__(self, target: Any, figures: Mapping[str, Any]) -> None:
        self.target = target
        self.utils = AotUtils(figures)
        self.launcher_cls = AotLauncher

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return divmod(self.target.arch, 10) if isinstance(self.target.arch, int) else (9, 0)  # torch's answer on AMD

    def get_current_target(self) -> Any:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        return None

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        return importlib.import_module("torch").device("meta")

    def get_device_interface(self) -> Any:
        raise AotError("backend aot: there is no device to time on; only compile latency is measured here")

    def get_benchmarker(self) -> Callable[..., tuple[float, float, float]]:
        return compile_only


class AotUtils:
    """Stands for the driver's C module: loading a binary hands out the next handle."""

    def __init__(self, figures: Mapping[str, Any]) -> None:
        self._figures = figures
        self._handles = itertools.count(1)

    def get_device_properties(self, device: int = 0) -> dict[str, Any]:
        return dict(self._figures)

    def load_binary(self, *_: Any) -> tuple[int, int, int, int, int]:
        """(module, function, registers, spills, threads per block); stages reads the real counts from the binary."""
        handle = next(self._handles)
        return handle, handle, 0, 0, THREADS_PER_BLOCK

    def unload_module(self, module: int) -> None:
        return None


class AotLauncher:
    """Triton's launcher protocol: calls the launch hooks, as the compiled C launcher does, and launches nothing."""

    def __init__(self, src: Any, metadata: Any) -> None:
        pass

    def __call__(self, *launch_arguments: Any) -> None:
        # (grid x, y, z, stream, function, packed metadata, launch metadata, enter hook, exit hook, *kernel arguments)
        launch, enter, leave = launch_arguments[6:9]
        if enter is not None:
            enter(launch)
        if leave is not None:
            leave(launch)


def compile_only(kernel_call: Callable[[], Any], quantiles: Any = None, **_: Any) -> tuple[float, float, float]:
    """The tuner's benchmarker: compile and load the candidate, prefer none (the first that loads wins every tie)."""
    kernel_call()
    return (0.0, 0.0, 0.0)
