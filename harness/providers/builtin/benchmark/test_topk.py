from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builtin_ops.sort import topk

from .base import Benchmark, Shape


class TopkBenchmark(Benchmark):
    """One matrix (M, N) and k."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        *size, k = shape
        yield torch.randn(size, dtype=dtype, device=self.device), k

    def set_more_shapes(self) -> list[Shape]:
        return [(4096, 100, 5), (1024, 2048, 1)]


@pytest.mark.topk
def test_topk() -> None:
    TopkBenchmark("topk", torch_op=torch.topk, gems_op=topk).run()
