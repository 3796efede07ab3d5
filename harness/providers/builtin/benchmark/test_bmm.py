import pytest
import torch
from builtin_ops.matmul import bmm

from .base import BlasBenchmark


@pytest.mark.bmm
def test_bmm() -> None:
    BlasBenchmark("bmm", torch_op=torch.bmm, gems_op=bmm).run()
