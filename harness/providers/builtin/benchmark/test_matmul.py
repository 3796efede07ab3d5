from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builtin_ops.matmul import matmul

from .base import BlasBenchmark, Shape


class MatmulBenchmark(BlasBenchmark):
    """The first of the B products."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for left, right in super().inputs((1, *shape[1:]), dtype):
            yield left[0], right[0]

    def set_more_shapes(self) -> list[Shape]:
        return [
            (1, 2048, 2048, 2048),
            (1, 16, 4096, 4096),
            (1, 1000, 1001, 1003),
            (1, 4096, 11008, 4096),
            (1, 8192, 1024, 8192),
        ]


@pytest.mark.matmul
def test_matmul() -> None:
    MatmulBenchmark("matmul", torch_op=torch.matmul, gems_op=matmul).run()
