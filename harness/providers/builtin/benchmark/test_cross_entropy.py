from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builtin_ops.cross_entropy import cross_entropy

from .base import Benchmark, Shape


class CrossEntropyBenchmark(Benchmark):
    """Logits (M, classes) and a target per row."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        logits = torch.randn(shape, dtype=dtype, device=self.device)
        yield logits, torch.randint(shape[1], shape[:1], device=self.device)

    def set_more_shapes(self) -> list[Shape]:
        return [(16384, 10), (1000, 50257)]


def reference(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, target, reduction="none")


@pytest.mark.cross_entropy
def test_cross_entropy() -> None:
    CrossEntropyBenchmark("cross_entropy", torch_op=reference, gems_op=cross_entropy).run()
