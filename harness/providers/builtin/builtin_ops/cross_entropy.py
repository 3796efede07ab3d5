"""Cross entropy per row: one online log-sum-exp pass over the classes."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(logits, target, loss, classes, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    peak = -float("inf")
    mass = 0.0
    for start in range(0, classes, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        part = tl.load(logits + row * classes + lanes, mask=lanes < classes, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(peak, tl.max(part, axis=0))
        mass = mass * tl.exp(peak - higher) + tl.sum(tl.exp(part - higher), axis=0)
        peak = higher
    label = tl.load(target + row)
    counted = label != ignore_index
    chosen = tl.load(logits + row * classes + label, mask=counted, other=0.0).to(tl.float32)
    tl.store(loss + row, tl.where(counted, peak + tl.log(mass) - chosen, 0.0))


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    """Loss per row. logits: (M, classes); target: (M,) int64; an ignored target costs 0."""
    rows, classes = logits.shape
    loss = torch.empty((rows,), dtype=logits.dtype, device=logits.device)
    block = min(triton.next_power_of_2(classes), 4096)
    cross_entropy_kernel[(rows,)](logits, target, loss, classes, ignore_index, BLOCK=block, num_warps=8)
    return loss
