"""Every builtin operator against torch, at sizes that mask.

Run by test_builtin_ops.py in a process of its own, for TRITON_INTERPRET is read when triton is first imported;
CALIBER_RUNTIME says where (cpu: the interpreter, cuda: the GPU's own code).
"""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import triton.language as tl
from benchmark.base import Benchmark, runtime
from builtin_ops import attention, matmul, rms_norm
from builtin_ops.cross_entropy import cross_entropy
from builtin_ops.dropout import dropout
from builtin_ops.softmax import softmax
from builtin_ops.sort import sort, topk
from triton.runtime import interpreter

DEVICE = runtime()
ODD = json.loads((Path(__file__).parent / "builtin_odd_shapes.json").read_text(encoding="utf-8"))
TUNERS = {"matmul": matmul.matmul_kernel, "bmm": matmul.bmm_kernel, "attention": attention.attention_kernel}
#: Relative and absolute, of the output dtype; results are O(1) but for sums and products, see `scale`.
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2, torch.float32: 2e-5, torch.int32: 0.0}


@pytest.fixture(autouse=True)
def bfloat16_dots(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter holds bfloat16 as uint16, and its dot (3.6 to 3.7) multiplies those integers: widen them."""
    builder = interpreter.InterpreterBuilder
    dot = builder.create_dot

    def widened(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return interpreter.TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    monkeypatch.setattr(builder, "create_dot", lambda self, a, b, *rest: dot(self, widened(a), widened(b), *rest))


def benchmark_of(op: str) -> Benchmark:
    """The Benchmark that test_<op> builds, not run."""
    module = importlib.import_module(f"benchmark.test_{op}")
    built: list[Benchmark] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Benchmark, "run", lambda self: built.append(self))
        getattr(module, f"test_{op}")()
    return built[0]


def exact(item: Any) -> Any:
    return item.double() if isinstance(item, torch.Tensor) and item.is_floating_point() else item


def allowed(op: str, dtype: torch.dtype) -> float:
    # On a GPU tl.dot rounds float32 operands to tf32: 10 bits of mantissa.
    return 2e-3 if op in ("matmul", "bmm") and dtype is torch.float32 and DEVICE != "cpu" else TOLERANCE[dtype]


def check(bench: Benchmark, dtype: torch.dtype) -> None:
    for item in bench.get_input_iter(dtype):
        args, kwargs = bench.unpack_to_args_kwargs(item)
        got = bench.gems_op(*args, **kwargs)
        expected = bench.torch_op(*map(exact, args), **kwargs)
        single = isinstance(got, torch.Tensor)
        for mine, theirs in zip([got] if single else got, [expected] if single else expected, strict=True):
            assert mine.shape == theirs.shape, bench.record_shapes(*args, **kwargs)
            if mine.dtype is not torch.int64:
                # An error of a long sum scales with the sum's largest terms, not with an element near zero.
                scale = max(1.0, theirs.abs().max().item())
                tolerance = allowed(bench.op_name, dtype)
                torch.testing.assert_close(mine.double(), theirs.double(), rtol=tolerance, atol=tolerance * scale)


# Dropout has no reference to be equal to; its own tests are below.
OPS = [op for op in ODD if op != "dropout"]
CASES = [pytest.param(op, dtype, id=f"{op}-{dtype}") for op in OPS for dtype in benchmark_of(op).dtypes]


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_it_agrees_with_torch_at_odd_sizes(op: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark_of(op)
    # The interpreter takes 10 ms per program: the other dtypes get the last shape and candidate only.
    part = slice(None) if dtype is bench.dtypes[0] else slice(-1, None)
    bench.shapes = list(map(tuple, ODD[op]["shapes"][part]))
    tuner = TUNERS.get(op)
    for config in tuner.configs[part] if tuner else [None]:
        if tuner:  # A tuner with one candidate launches it untimed: each candidate is checked, none needs a driver.
            monkeypatch.setattr(tuner, "configs", [config])
        check(bench, dtype)


def test_rms_norm_backward_adds_up_all_rows_of_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rms_norm, "BACKWARD_PROGRAMS", 4)
    bench = benchmark_of("rms_norm_backward")
    bench.shapes = [(11, 33)]
    check(bench, torch.float32)


def data(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(shape, device=DEVICE).to(dtype)


def first_candidate(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    monkeypatch.setattr(TUNERS[op], "configs", TUNERS[op].configs[-1:])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.bfloat16])
def test_dropout_zeroes_p_of_the_elements_and_scales_the_others(dtype: torch.dtype) -> None:
    x = torch.ones(10001, device=DEVICE, dtype=dtype)
    out = dropout(x, 0.3, seed=7)
    kept = out != 0
    torch.testing.assert_close(out[kept].double(), torch.full_like(out[kept], 1 / 0.7, dtype=torch.double),
                               rtol=TOLERANCE[dtype] * 2, atol=0)  # fmt: skip
    # Five standard deviations of a binomial with n = 10001, p = 0.3.
    assert abs(kept.double().mean().item() - 0.7) < 5 * (0.3 * 0.7 / 10001) ** 0.5
    halves = kept.double().split(5001)
    assert abs(halves[0].mean().item() - halves[1].mean().item()) < 0.05


def test_dropout_is_a_function_of_its_seed() -> None:
    x = data(5000)
    assert torch.equal(dropout(x, 0.5, 3), dropout(x, 0.5, 3))
    assert not torch.equal(dropout(x, 0.5, 3), dropout(x, 0.5, 4))


def test_dropout_of_nothing_is_the_input() -> None:
    x = data(1000)
    assert torch.equal(dropout(x, 0.0, 1), x)


def test_dropout_refuses_a_probability_of_one() -> None:
    with pytest.raises(ValueError, match=r"probability 1\.0"):
        dropout(data(4), 1.0, 1)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_is_stable_and_its_indices_find_the_values(descending: bool) -> None:
    x = torch.randint(-4, 4, (2, 37), device=DEVICE, dtype=torch.int32)
    values, indices = sort(x, descending=descending)
    expected = torch.sort(x, dim=-1, descending=descending, stable=True)
    assert torch.equal(values, expected.values)
    assert torch.equal(indices, expected.indices)


@pytest.mark.parametrize("descending", [False, True])
def test_sort_keeps_the_extremes_apart_from_its_padding(descending: bool) -> None:
    edges = [float("inf"), -float("inf"), float("nan"), 3.0e38, -1.0]
    x = torch.tensor([edges], device=DEVICE)
    values, indices = sort(x, descending=descending)
    expected = torch.sort(x, dim=-1, descending=descending, stable=True)
    torch.testing.assert_close(values, expected.values, equal_nan=True, rtol=0, atol=0)
    assert torch.equal(indices, expected.indices)
    limits = torch.iinfo(torch.int32)
    x = torch.tensor([[limits.max, 0, limits.min]], device=DEVICE, dtype=torch.int32)
    assert torch.equal(sort(x, descending=descending)[0], torch.sort(x, descending=descending).values)


def test_topk_takes_the_first_of_equals_and_negative_rows() -> None:
    x = torch.tensor([[-5.0, -2.0, -2.0, -9.0, -float("inf")]], device=DEVICE)
    values, indices = topk(x, 5)
    assert values.tolist() == [[-2.0, -2.0, -5.0, -9.0, -float("inf")]]
    assert indices.tolist() == [[1, 2, 0, 3, 4]]


def test_topk_refuses_more_than_a_row_has() -> None:
    with pytest.raises(ValueError, match="topk of 6: a row has 5"):
        topk(data(2, 5), 6)


def test_an_ignored_target_costs_nothing() -> None:
    logits, target = data(4, 33), torch.tensor([0, -100, 32, 5], device=DEVICE)
    expected = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    torch.testing.assert_close(cross_entropy(logits, target), expected, rtol=1e-5, atol=1e-5)


def test_softmax_survives_large_values() -> None:
    x = data(2, 50) * 1e4
    torch.testing.assert_close(softmax(x), torch.softmax(x, -1), rtol=1e-5, atol=1e-6)


def test_a_row_too_long_for_one_program_is_refused() -> None:
    with pytest.raises(ValueError, match="row of 65537 elements"):
        softmax(data(1, 65537))


def test_matmul_takes_transposed_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    first_candidate(monkeypatch, "matmul")
    a, b = data(40, 70, dtype=torch.float16).t(), data(30, 40, dtype=torch.float16).t()
    expected = a.double() @ b.double()
    torch.testing.assert_close(matmul.matmul(a, b).double(), expected, rtol=2e-3, atol=2e-2)


def test_matmul_in_ieee_precision_is_exact_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    first_candidate(monkeypatch, "matmul")
    a, b = data(40, 70), data(70, 50)
    expected = (a.double() @ b.double()).float()
    torch.testing.assert_close(matmul.matmul(a, b, input_precision="ieee"), expected, rtol=1e-5, atol=1e-4)


def test_attention_refuses_a_head_it_cannot_tile() -> None:
    with pytest.raises(ValueError, match="head size 48"):
        attention.attention(*[data(1, 1, 4, 48, dtype=torch.float16)] * 3)
