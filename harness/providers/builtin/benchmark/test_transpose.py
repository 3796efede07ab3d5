import pytest
import torch
from builtin_ops.transpose import transpose

from .base import Shape, UnaryPointwiseBenchmark


class TransposeBenchmark(UnaryPointwiseBenchmark):
    """One matrix (M, N)."""

    def set_more_shapes(self) -> list[Shape]:
        return [(1, 65536), (4097, 1023), (100, 100000)]


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous()


@pytest.mark.transpose
def test_transpose() -> None:
    TransposeBenchmark("transpose", torch_op=reference, gems_op=transpose).run()
