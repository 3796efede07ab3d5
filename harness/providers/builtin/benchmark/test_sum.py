import pytest
import torch
from builtin_ops.sum import sum_dim

from .base import ReductionBenchmark


@pytest.mark.sum
def test_sum() -> None:
    ReductionBenchmark("sum", torch_op=torch.sum, gems_op=sum_dim).run()
