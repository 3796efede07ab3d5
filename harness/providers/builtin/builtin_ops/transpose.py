"""Materialised transpose of a matrix, tile by tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(x, out, rows, columns, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr):
    down = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    across = tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    inside = (down < rows)[:, None] & (across < columns)[None, :]
    tile = tl.load(x + down[:, None] * columns + across[None, :], mask=inside)
    tl.store(out + across[:, None] * rows + down[None, :], tl.trans(tile), mask=tl.trans(inside))


def transpose(x: torch.Tensor) -> torch.Tensor:
    """(M, N) -> contiguous (N, M)."""
    rows, columns = x.shape
    out = torch.empty((columns, rows), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, 64), triton.cdiv(columns, 64))
    transpose_kernel[grid](x, out, rows, columns, BLOCK_ROWS=64, BLOCK_COLUMNS=64)
    return out
