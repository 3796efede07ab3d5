"""Root-mean-square normalisation over the last dimension, forward and backward."""

import torch
import triton
import triton.language as tl

from .rows import row_block
from .sum import sum_dim

#: Programs of the backward kernel; each owns one partial row of the weight gradient. About two per SM of an H200,
#: and a constant: on meta tensors there is no device to ask.
BACKWARD_PROGRAMS = 256


@triton.jit
def rms_norm_kernel(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    first = tl.program_id(0) * columns
    lanes = tl.arange(0, BLOCK)
    inside = lanes < columns
    row = tl.load(x + first + lanes, mask=inside, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(tl.sum(row * row, axis=0) / columns + eps)
    gain = tl.load(weight + lanes, mask=inside).to(tl.float32)
    tl.store(out + first + lanes, row * scale * gain, mask=inside)


@triton.jit
def rms_norm_backward_kernel(grad, x, weight, grad_x, partial, rows, columns, eps, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    inside = lanes < columns
    gain = tl.load(weight + lanes, mask=inside, other=0.0).to(tl.float32)
    grad_gain = tl.zeros([BLOCK], dtype=tl.float32)
    for row_index in range(tl.program_id(0), rows, tl.num_programs(0)):
        places = row_index * columns + lanes
        row = tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
        incoming = tl.load(grad + places, mask=inside, other=0.0).to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(row * row, axis=0) / columns + eps)
        normal = row * scale
        weighted = incoming * gain
        projection = tl.sum(weighted * normal, axis=0) / columns
        tl.store(grad_x + places, (weighted - normal * projection) * scale, mask=inside)
        grad_gain += incoming * normal
    tl.store(partial + tl.program_id(0) * columns + lanes, grad_gain, mask=inside)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimension; weight: (N,)."""
    columns = x.shape[-1]
    block, warps = row_block(columns)
    out = torch.empty_like(x)
    rms_norm_kernel[(x.numel() // columns,)](x, weight, out, columns, eps, BLOCK=block, num_warps=warps)
    return out


def rms_norm_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """(gradient of x, gradient of weight) for the output gradient `grad`, shaped like x."""
    columns = x.shape[-1]
    rows = x.numel() // columns
    block, warps = row_block(columns)
    programs = min(rows, BACKWARD_PROGRAMS)
    grad_x = torch.empty_like(x)
    partial = torch.empty((programs, columns), dtype=torch.float32, device=x.device)
    rms_norm_backward_kernel[(programs,)](
        grad, x, weight, grad_x, partial, rows, columns, eps, BLOCK=block, num_warps=warps
    )
    return grad_x, sum_dim(partial, dim=0).to(weight.dtype)
