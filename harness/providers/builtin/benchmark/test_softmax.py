import pytest
import torch
from builtin_ops.softmax import softmax

from .base import RowBenchmark


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


@pytest.mark.softmax
def test_softmax() -> None:
    RowBenchmark("softmax", torch_op=reference, gems_op=softmax).run()
