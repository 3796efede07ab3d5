from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builtin_ops.attention import attention

from .base import Benchmark, Shape


class AttentionBenchmark(Benchmark):
    """Query, key and value (B, H, S, D), without and with the causal mask."""

    def inputs(self, shape: Shape, dtype: torch.dtype) -> Iterator[tuple[Any, ...]]:
        query, key, value = (torch.randn(shape, dtype=dtype, device=self.device) for _ in range(3))
        for is_causal in (False, True):
            yield query, key, value, {"is_causal": is_causal}

    def set_more_shapes(self) -> list[Shape]:
        return [(2, 8, 1000, 64), (1, 16, 4097, 128)]


@pytest.mark.attention
def test_attention() -> None:
    AttentionBenchmark(
        "attention",
        torch_op=torch.nn.functional.scaled_dot_product_attention,
        gems_op=attention,
        dtypes=(torch.float16, torch.bfloat16),
    ).run()
