import pytest
import torch
from builtin_ops.gelu import gelu

from .base import UnaryPointwiseBenchmark


@pytest.mark.gelu
def test_gelu() -> None:
    UnaryPointwiseBenchmark("gelu", torch_op=torch.nn.functional.gelu, gems_op=gelu).run()
