import pytest
import torch
from builtin_ops.add import add

from .base import BinaryPointwiseBenchmark


@pytest.mark.add
def test_add() -> None:
    BinaryPointwiseBenchmark("add", torch_op=torch.add, gems_op=add).run()
