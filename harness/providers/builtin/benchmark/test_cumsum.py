import pytest
import torch
from builtin_ops.cumsum import cumsum

from .base import RowBenchmark


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x, dim=-1)


@pytest.mark.cumsum
def test_cumsum() -> None:
    RowBenchmark("cumsum", torch_op=reference, gems_op=cumsum).run()
