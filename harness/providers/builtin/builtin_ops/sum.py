"""Sum over one dimension: along rows when it is the last one, else down columns."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def sum_rows_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + lanes, mask=lanes < columns, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(total, axis=0))


@triton.jit
def sum_columns_kernel(x, out, rows, inner, BLOCK_ROWS: tl.constexpr, BLOCK_INNER: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK_INNER + tl.arange(0, BLOCK_INNER)
    outer = tl.program_id(1)
    total = tl.zeros([BLOCK_ROWS, BLOCK_INNER], dtype=tl.float32)
    for start in range(0, rows, BLOCK_ROWS):
        steps = start + tl.arange(0, BLOCK_ROWS)
        inside = (steps < rows)[:, None] & (lanes < inner)[None, :]
        places = (outer * rows + steps)[:, None] * inner + lanes[None, :]
        total += tl.load(x + places, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + outer * inner + lanes, tl.sum(total, axis=0), mask=lanes < inner)


def sum_dim(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Sum of `x` over `dim` (negative counts from the end), accumulated in float32; the dtype stays."""
    axis = dim % x.dim()
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    out = torch.empty(shape, dtype=x.dtype, device=x.device)
    length, inner, outer = x.shape[axis], math.prod(x.shape[axis + 1 :]), math.prod(x.shape[:axis])
    if inner == 1:
        sum_rows_kernel[(outer,)](x, out, length, BLOCK=min(triton.next_power_of_2(length), 2048))
    else:
        sum_columns_kernel[(triton.cdiv(inner, 64), outer)](x, out, length, inner, BLOCK_ROWS=32, BLOCK_INNER=64)
    return out
