"""Embedding: gather rows of a table by index."""

import torch
import triton
import triton.language as tl


@triton.jit
def embedding_kernel(index, table, out, width, BLOCK: tl.constexpr):
    place = tl.program_id(0)
    lanes = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = lanes < width
    row = tl.load(index + place)
    tl.store(out + place * width + lanes, tl.load(table + row * width + lanes, mask=inside), mask=inside)


def embedding(index: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """table[index]. index: any shape, int64; table: (V, D); result: index.shape + (D,)."""
    width = table.shape[1]
    out = torch.empty((*index.shape, width), dtype=table.dtype, device=table.device)
    block = min(triton.next_power_of_2(width), 2048)
    embedding_kernel[(index.numel(), triton.cdiv(width, block))](index, table, out, width, BLOCK=block)
    return out
