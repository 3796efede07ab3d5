"""Matrix product and batched matrix product, tuned per problem size.

`input_precision` of float32 operands is the compiler's own unless the caller names one (cuda: tf32, hip: ieee). Why
not fixed here: a fixed value hides TRITON_F32_DEFAULT, and hip targets other than gfx94x refuse tf32.
"""

import torch
import triton
import triton.language as tl


def _tile(m: int, n: int, k: int, warps: int, stages: int) -> triton.Config:
    return triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=warps, num_stages=stages)


# Every candidate fits the 227 KiB of shared memory of an H200 with float32 operands too, and the last one the
# 64 KiB of a gfx942: a candidate that never fits only costs a compilation.
MATMUL_TILES = [_tile(128, 256, 32, 8, 4), _tile(128, 128, 64, 8, 3), _tile(128, 64, 64, 4, 3), _tile(64, 64, 32, 4, 2)]
BMM_TILES = [_tile(128, 128, 64, 8, 3), _tile(128, 64, 32, 4, 4), _tile(64, 64, 32, 4, 2)]


@triton.jit
def tile_product(
    a, b, m, n, depth, a_row, a_column, b_row, b_column, tile_m, tile_n,
    PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """One float32 tile of a @ b. Rows and columns past the edge wrap around: their results are never stored."""
    down = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    across = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    along = tl.arange(0, BLOCK_K)
    a_places = a + down[:, None] * a_row + along[None, :] * a_column
    b_places = b + along[:, None] * b_row + across[None, :] * b_column
    total = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in range(0, depth, BLOCK_K):
        left = tl.load(a_places, mask=(along < depth - start)[None, :], other=0.0)
        right = tl.load(b_places, mask=(along < depth - start)[:, None], other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
        a_places += BLOCK_K * a_column
        b_places += BLOCK_K * b_row
    return total


@triton.jit
def store_tile(out, total, m, n, tile_m, tile_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    down = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    across = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    inside = (down < m)[:, None] & (across < n)[None, :]
    tl.store(out + down[:, None] * n + across[None, :], total.to(out.dtype.element_ty), mask=inside)


@triton.autotune(configs=MATMUL_TILES, key=["m", "n", "depth"])
@triton.jit
def matmul_kernel(
    a, b, out, m, n, depth, a_row, a_column, b_row, b_column,
    PRECISION: tl.constexpr, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    # GROUP rows of tiles are walked column by column, so that neighbours in time share operands in L2.
    tile_m, tile_n = tl.swizzle2d(
        tl.program_id(0) // tl.cdiv(n, BLOCK_N), tl.program_id(0) % tl.cdiv(n, BLOCK_N),
        tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP,
    )  # fmt: skip
    total = tile_product(
        a, b, m, n, depth, a_row, a_column, b_row, b_column, tile_m, tile_n, PRECISION, BLOCK_M, BLOCK_N, BLOCK_K
    )
    store_tile(out, total, m, n, tile_m, tile_n, BLOCK_M, BLOCK_N)


@triton.autotune(configs=BMM_TILES, key=["m", "n", "depth"])
@triton.jit
def bmm_kernel(
    a, b, out, m, n, depth, a_batch, a_row, a_column, b_batch, b_row, b_column,
    PRECISION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    total = tile_product(
        a + batch * a_batch, b + batch * b_batch, m, n, depth, a_row, a_column, b_row, b_column, tile_m, tile_n,
        PRECISION, BLOCK_M, BLOCK_N, BLOCK_K,
    )  # fmt: skip
    store_tile(out + batch * m * n, total, m, n, tile_m, tile_n, BLOCK_M, BLOCK_N)


def matmul(a: torch.Tensor, b: torch.Tensor, input_precision: str | None = None) -> torch.Tensor:
    """(M, K) @ (K, N), any strides, accumulated in float32."""
    (m, depth), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)

    matmul_kernel[grid](a, b, out, m, n, depth, *a.stride(), *b.stride(), PRECISION=input_precision, GROUP=8)
    return out


def bmm(a: torch.Tensor, b: torch.Tensor, input_precision: str | None = None) -> torch.Tensor:
    """(B, M, K) @ (B, K, N), any strides, accumulated in float32; B at most 65535."""
    (batch, m, depth), n = a.shape, b.shape[2]
    out = torch.empty((batch, m, n), dtype=a.dtype, device=a.device)

    def grid(meta: dict[str, int]) -> tuple[int, int, int]:
        return triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"]), batch

    bmm_kernel[grid](a, b, out, m, n, depth, *a.stride(), *b.stride(), PRECISION=input_precision)
    return out
