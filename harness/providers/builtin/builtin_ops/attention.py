"""Flash attention, forward: scores never leave the chip; softmax statistics and output stay in float32."""

import math

import torch
import triton
import triton.language as tl

TILES = [
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 128}, num_warps=8, num_stages=2),
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8, num_stages=3),
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 32}, num_warps=4, num_stages=2),
]


@triton.autotune(configs=TILES, key=["length", "HEAD", "CAUSAL"])
@triton.jit
def attention_kernel(
    query, key, value, out, length, scale,
    CAUSAL: tl.constexpr, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(1) * length * HEAD
    down = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    lanes = tl.arange(0, HEAD)
    q_places = first + down[:, None] * HEAD + lanes[None, :]
    q = tl.load(query + q_places, mask=(down < length)[:, None], other=0.0)
    peak = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    mass = tl.zeros([BLOCK_M], dtype=tl.float32)
    total = tl.zeros([BLOCK_M, HEAD], dtype=tl.float32)
    stop = length
    if CAUSAL:
        stop = tl.minimum(length, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(0, stop, BLOCK_N):
        steps = start + tl.arange(0, BLOCK_N)
        k = tl.load(key + first + steps[None, :] * HEAD + lanes[:, None], mask=(steps < length)[None, :], other=0.0)
        visible = (steps < length)[None, :]
        if CAUSAL:
            visible = visible & (down[:, None] >= steps[None, :])
        score = tl.where(visible, tl.dot(q, k) * scale, -float("inf"))
        higher = tl.maximum(peak, tl.max(score, axis=1))
        weight = tl.exp2(score - higher[:, None])
        shrink = tl.exp2(peak - higher)
        mass = mass * shrink + tl.sum(weight, axis=1)
        v = tl.load(value + first + steps[:, None] * HEAD + lanes[None, :], mask=(steps < length)[:, None], other=0.0)
        total = tl.dot(weight.to(v.dtype), v, total * shrink[:, None])
        peak = higher
    result = total / mass[:, None]
    tl.store(out + q_places, result.to(out.dtype.element_ty), mask=(down < length)[:, None])


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, is_causal: bool = False) -> torch.Tensor:
    """softmax(query @ key^T / sqrt(D)) @ value; all (B, H, S, D), D a power of two from 16 to 256."""
    batch, heads, length, head = query.shape
    if head not in (16, 32, 64, 128, 256):
        raise ValueError(f"attention head size {head}: must be a power of two from 16 to 256")
    out = torch.empty_like(query)

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(length, meta["BLOCK_M"]), batch * heads

    # exp2 is one instruction where exp is two: the factor log2(e) goes into the scale.
    scale = math.log2(math.e) / math.sqrt(head)
    attention_kernel[grid](query, key, value, out, length, scale, CAUSAL=is_causal, HEAD=head)
    return out
