from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builtin_ops.rms_norm import rms_norm_backward

from .base import NormBenchmark, Shape


class NormBackwardBenchmark(NormBenchmark):
    """Gradient of the output, x, weight."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        for x, weight in super().inputs(shape, dtype):
            yield torch.randn_like(x), x, weight


def reference(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    out = torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)
    return torch.autograd.grad(out, (x, weight), grad)


@pytest.mark.rms_norm_backward
def test_rms_norm_backward() -> None:
    NormBackwardBenchmark("rms_norm_backward", torch_op=reference, gems_op=rms_norm_backward).run()
