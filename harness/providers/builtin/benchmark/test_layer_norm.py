import pytest
import torch
from builtin_ops.layer_norm import layer_norm

from .base import NormBenchmark


class LayerNormBenchmark(NormBenchmark):
    """x, weight, bias."""

    vectors = 2


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


@pytest.mark.layer_norm
def test_layer_norm() -> None:
    LayerNormBenchmark("layer_norm", torch_op=reference, gems_op=layer_norm).run()
