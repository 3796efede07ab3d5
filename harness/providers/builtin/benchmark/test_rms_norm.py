import pytest
import torch
from builtin_ops.rms_norm import rms_norm

from .base import NormBenchmark


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)


@pytest.mark.rms_norm
def test_rms_norm() -> None:
    NormBenchmark("rms_norm", torch_op=reference, gems_op=rms_norm).run()
