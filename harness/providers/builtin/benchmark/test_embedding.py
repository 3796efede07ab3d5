from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builtin_ops.embedding import embedding

from .base import Benchmark, Shape


class EmbeddingBenchmark(Benchmark):
    """Indices into a table (V, D)."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        count, rows, width = shape
        index = torch.randint(rows, (count,), device=self.device)
        yield index, torch.randn((rows, width), dtype=dtype, device=self.device)

    def set_more_shapes(self) -> list[Shape]:
        return [(1, 32000, 1024), (16384, 1000, 300), (1025, 50257, 768)]


@pytest.mark.embedding
def test_embedding() -> None:
    EmbeddingBenchmark("embedding", torch_op=torch.nn.functional.embedding, gems_op=embedding).run()
