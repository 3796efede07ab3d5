"""Dropout with a Philox generator: what is kept depends on the seed and the position only."""

import torch
import triton
import triton.language as tl


# Why not specialize the seed: seeds 1 and 16 would each compile a kernel of their own.
@triton.jit(do_not_specialize=["seed"])
def dropout_kernel(x, out, size, seed, p, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    value = tl.load(x + offsets, mask=inside).to(tl.float32)
    kept = tl.rand(seed, offsets) >= p
    tl.store(out + offsets, tl.where(kept, value * scale, 0.0), mask=inside)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Zero each element with probability `p` (0 <= p < 1), scale the others by 1 / (1 - p)."""
    if not 0.0 <= p < 1.0:
        raise ValueError(f"dropout probability {p}: must be at least 0 and below 1")
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 1024),)
    dropout_kernel[grid](x, out, x.numel(), seed, float(p), 1.0 / (1.0 - p), BLOCK=1024)
    return out
