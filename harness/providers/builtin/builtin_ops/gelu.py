"""Gaussian error linear unit, exact (erf) form."""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x, out, size, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    value = tl.load(x + offsets, mask=inside).to(tl.float32)
    gated = 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))
    tl.store(out + offsets, gated, mask=inside)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """x * Phi(x), computed in float32."""
    out = torch.empty_like(x)
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
