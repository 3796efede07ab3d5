"""pytest plugin: run the benchmarks on meta tensors, really compiled for a target, launched nowhere.

A stand-in for a GPU driver: it names the target and accepts every binary. BUILTIN_TARGET is backend:arch:warp size,
BUILTIN_PART is "first" (first dtype and input of each operator) or "all". Loaded by test_builtin_ops.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
import triton.testing
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

#: Shared memory per block in bytes: an H200 and an MI300.
SHARED = {"cuda": 232448, "hip": 65536}
BACKEND, ARCH, WARP = os.environ["BUILTIN_TARGET"].split(":")


class Utils:
    """Loads nothing; the launch path checks the sizes it reports."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": SHARED[BACKEND], "multiprocessor_count": 132, "warpSize": int(WARP)}

    def load_binary(self, *args: Any) -> tuple[int, int, int, int, int]:
        return 1, 1, 0, 0, 1024


class Launcher:
    def __init__(self, src: Any, metadata: Any) -> None:
        pass

    def __call__(self, *args: Any) -> None:
        pass


class Driver:
    utils = Utils()
    launcher_cls = Launcher

    def get_current_target(self) -> GPUTarget:
        return GPUTarget(BACKEND, int(ARCH) if ARCH.isdigit() else ARCH, int(WARP))

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("meta")

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return lambda call, quantiles: (call(), [1.0, 1.0, 1.0])[1]


def report(*, src: Any, metadata: dict[str, Any], times: Any, cache_hit: bool, **_: Any) -> None:
    if not cache_hit:
        shared = metadata["shared"]
        fits = "" if shared <= SHARED[BACKEND] else " DOES_NOT_FIT"
        print(f"COMPILED {metadata['name']} seconds={times.total / 1e6:.2f} shared={shared}{fits}")


def once(call: Callable[[], Any], **_: Any) -> float:
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1e3


def pytest_configure(config: pytest.Config) -> None:
    driver.set_active(Driver())
    knobs.compilation.listener = report
    triton.testing.do_bench = once


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    from benchmark.base import Benchmark  # the class the collected tests use, not a second copy

    if os.environ["BUILTIN_PART"] == "all":
        return
    every = Benchmark.get_input_iter
    set_dtypes = Benchmark.set_dtypes

    def first_input(self: Benchmark, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        return islice(every(self, dtype), 1)

    def first_dtype(self: Benchmark, wanted: Any) -> None:
        set_dtypes(self, wanted)
        self.to_bench_dtypes = self.to_bench_dtypes[:1]

    Benchmark.get_input_iter = first_input  # type: ignore[method-assign]
    Benchmark.set_dtypes = first_dtype  # type: ignore[method-assign]
