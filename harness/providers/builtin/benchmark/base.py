"""The benchmark protocol of the builtin provider: which inputs an operator is timed on, and what times it.

It mirrors the attribute and method names of FlagGems' protocol, so that one set of plugins serves both providers.
It must not know caliber: it times with whatever `triton.testing.do_bench` is at the moment of the call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import triton.testing

CORE_SHAPES = Path(__file__).parent / "core_shapes.json"
METRICS = ("latency_base", "latency")
FLOATS = (torch.float16, torch.float32, torch.bfloat16)
Shape = tuple[int, ...]


def runtime() -> str:
    """The torch device type to run on: CALIBER_RUNTIME, else cuda where there is one, else cpu."""
    return os.environ.get("CALIBER_RUNTIME") or ("cuda" if torch.cuda.is_available() else "cpu")


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Options:
    """What the command line asked for; times in ms."""

    level: str = "comprehensive"
    warmup_ms: float = 25
    rep_ms: float = 100
    dtypes: tuple[str, ...] = ()
    metrics: tuple[str, ...] = METRICS
    shape_file: str = str(CORE_SHAPES)


@contextmanager
def named(*place: object) -> Iterator[None]:
    """Fail the test with the place in the message: the operator, dtype and shape that an error came from."""
    try:
        yield
    except Exception as error:
        pytest.fail(f"{' '.join(map(str, place))}: {type(error).__name__}: {error}")


class Benchmark:
    """One operator, its torch reference, and the dtypes and shapes it is timed on.

    `torch_op` and `gems_op` (the operator under test) take the same arguments. Subclasses say what the arguments
    are for a shape (`inputs`), and which shapes the level comprehensive adds (`set_more_shapes`).
    """

    options: ClassVar[Options] = Options()

    def __init__(
        self,
        op_name: str,
        torch_op: Callable[..., Any],
        gems_op: Callable[..., Any],
        dtypes: tuple[torch.dtype, ...] = FLOATS,
    ) -> None:
        self.op_name = op_name
        self.torch_op = torch_op
        self.gems_op = gems_op
        self.dtypes = list(dtypes)
        self.to_bench_dtypes = self.dtypes
        self.to_bench_metrics = list(METRICS)
        self.shapes: list[Shape] = []
        self.shape_desc = ""
        self.device = runtime()

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        """The argument tuples for one shape; a dict in a tuple holds keyword arguments."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its inputs are")

    def set_more_shapes(self) -> list[Shape]:
        """Shapes that the level comprehensive adds."""
        return []

    def set_dtypes(self, wanted: Iterable[str]) -> None:
        """Narrow to the dtypes named; ValueError names those that the operator does not take."""
        known = {dtype_name(dtype): dtype for dtype in self.dtypes}
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise ValueError(f"{self.op_name} does not take dtype {', '.join(unknown)}; it takes {', '.join(known)}")
        self.to_bench_dtypes = [known[name] for name in wanted] or self.dtypes

    def set_shapes(self, shape_file_path: str) -> None:
        """Shapes of the file under the operator's name, else under the first class name along the MRO."""
        path = Path(shape_file_path)
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"shape file {path} is not JSON: {error}") from None
        names = [self.op_name, *(cls.__name__ for cls in type(self).__mro__)]
        found = next((name for name in names if name in table), None)
        if found is None:
            raise ValueError(f"shape file {path} has no shapes for {self.op_name}: none of {', '.join(names)}")
        more = self.set_more_shapes() if self.options.level == "comprehensive" else []
        self.shapes = list(dict.fromkeys([*map(tuple, table[found]["shapes"]), *more]))
        self.shape_desc = table[found].get("shape_desc", "")

    def init_user_config(self) -> None:
        self.to_bench_metrics = list(self.options.metrics)
        self.set_dtypes(self.options.dtypes)
        self.set_shapes(self.options.shape_file)

    def get_input_iter(self, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        """Every input of every shape. Seeded per shape: both sides of a switch must see the same data."""
        for shape in self.shapes:
            torch.manual_seed(0)
            with named(self.op_name, dtype_name(dtype), shape, "inputs"):
                yield from self.inputs(shape, dtype)

    def unpack_to_args_kwargs(self, input_tuple: tuple[Any, ...]) -> tuple[list[Any], dict[str, Any]]:
        args = [item for item in input_tuple if not isinstance(item, dict)]
        kwargs = {key: value for item in input_tuple if isinstance(item, dict) for key, value in item.items()}
        return args, kwargs

    def record_shapes(self, *args: Any, **kwargs: Any) -> Any:
        """The arguments with sizes in place of tensors: args, kwargs, or the pair when there are both."""
        sizes = [_detail(item) for item in args]
        named_sizes = {key: _detail(item) for key, item in kwargs.items()}
        if sizes and named_sizes:
            return sizes, named_sizes
        return sizes or named_sizes

    def get_latency(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> float:
        """Median latency of `op` in ms. do_bench is looked up per call: a timing plugin may have replaced it."""
        latency: float = triton.testing.do_bench(
            lambda: op(*args, **kwargs),
            warmup=self.options.warmup_ms,
            rep=self.options.rep_ms,
            return_mode="median",
        )
        return latency

    def run(self) -> None:
        """Time every (dtype, input) and print one line each; the first that fails ends the test."""
        self.init_user_config()
        for dtype in self.to_bench_dtypes:
            for item in self.get_input_iter(dtype):
                self.run_row(dtype, item)

    def run_row(self, dtype: torch.dtype, item: tuple[Any, ...]) -> None:
        args, kwargs = self.unpack_to_args_kwargs(item)
        detail = json.dumps(self.record_shapes(*args, **kwargs), separators=(",", ":"), default=str)
        operators = {"latency_base": self.torch_op, "latency": self.gems_op}
        with named(self.op_name, dtype_name(dtype), detail):
            latencies = {name: self.get_latency(operators[name], *args, **kwargs) for name in self.to_bench_metrics}
        texts = [f"{name}_ms={latency}" for name, latency in latencies.items()]
        print("SUCCESS", self.op_name, dtype_name(dtype), *texts, f"shape={detail}", flush=True)


def _detail(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return item.size()
    if isinstance(item, (list, tuple)):
        return [_detail(part) for part in item]
    return item if isinstance(item, (bool, int, float, str, torch.dtype)) else None


class UnaryPointwiseBenchmark(Benchmark):
    """One tensor of any shape."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        yield (torch.randn(shape, dtype=dtype, device=self.device),)

    def set_more_shapes(self) -> list[Shape]:
        return [(1 << 20,), (10000, 1), (10000, 257), (64, 128, 1000), (1023, 4097)]


class BinaryPointwiseBenchmark(UnaryPointwiseBenchmark):
    """Two tensors of one shape."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        yield tuple(torch.randn(shape, dtype=dtype, device=self.device) for _ in range(2))


class RowBenchmark(UnaryPointwiseBenchmark):
    """One matrix (M, N), worked on row by row."""

    def set_more_shapes(self) -> list[Shape]:
        return [(16384, 128), (4096, 5000), (1023, 1025), (512, 32768)]


class ReductionBenchmark(RowBenchmark):
    """One matrix (M, N), reduced along its rows, then down its columns."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for dim in (-1, 0):
            yield torch.randn(shape, dtype=dtype, device=self.device), {"dim": dim}


class NormBenchmark(RowBenchmark):
    """A matrix (M, N) and `vectors` learned vectors (N,)."""

    vectors = 1

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        size = [shape, *[shape[-1:]] * self.vectors]
        yield tuple(torch.randn(part, dtype=dtype, device=self.device) for part in size)


class BlasBenchmark(Benchmark):
    """B products of an (M, K) with a (K, N) matrix; shapes are B, M, N, K."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        batch, m, n, depth = shape
        left = torch.randn((batch, m, depth), dtype=dtype, device=self.device)
        yield left, torch.randn((batch, depth, n), dtype=dtype, device=self.device)

    def set_more_shapes(self) -> list[Shape]:
        return [(4, 1000, 1001, 1003), (64, 256, 256, 64), (2, 8192, 1024, 1024)]
