from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builtin_ops.sort import sort

from .base import FLOATS, RowBenchmark, Shape


class SortBenchmark(RowBenchmark):
    """One matrix (M, N), floats or integers."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        if dtype.is_floating_point:
            yield from super().inputs(shape, dtype)
        else:
            yield (torch.randint(-(1 << 30), 1 << 30, shape, dtype=dtype, device=self.device),)

    def set_more_shapes(self) -> list[Shape]:
        return [(4096, 100), (1, 2048), (1024, 2048)]


@pytest.mark.sort
def test_sort() -> None:
    SortBenchmark("sort", torch_op=torch.sort, gems_op=sort, dtypes=(*FLOATS, torch.int32)).run()
