from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builtin_ops.dropout import dropout

from .base import Shape, UnaryPointwiseBenchmark


class DropoutBenchmark(UnaryPointwiseBenchmark):
    """x, probability, seed."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for (x,) in super().inputs(shape, dtype):
            yield x, 0.5, 1234


def reference(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """torch keeps its own generator state: the seed is not used."""
    return torch.nn.functional.dropout(x, p)


@pytest.mark.dropout
def test_dropout() -> None:
    DropoutBenchmark("dropout", torch_op=reference, gems_op=dropout).run()
