"""What the builtin benchmarks promise about shapes, dtypes and failures, on meta tensors. Run by test_builtin_ops.py
in a process of its own: `benchmark` is a top-level name that FlagGems uses too.
"""

import importlib
import json
import sys
from pathlib import Path

import pytest
import torch
import triton.testing
from benchmark.base import CORE_SHAPES, Benchmark, BlasBenchmark, Options

OPS = sorted(path.stem.removeprefix("test_") for path in CORE_SHAPES.parent.glob("test_*.py"))


class Narrow(BlasBenchmark):
    """A class of its own, so that the MRO has something to be walked along."""


def nothing(*_: object, **__: object) -> None:
    """An operator that does nothing."""


def benchmark_of(op: str, monkeypatch: pytest.MonkeyPatch) -> Benchmark:
    """The Benchmark that test_<op> builds, not run."""
    built: list[Benchmark] = []
    with monkeypatch.context() as patch:
        patch.setattr(Benchmark, "run", lambda self: built.append(self))
        getattr(importlib.import_module(f"benchmark.test_{op}"), f"test_{op}")()
    return built[0]


def shape_file(folder: Path, table: object) -> str:
    path = folder / "shapes.json"
    path.write_text(table if isinstance(table, str) else json.dumps(table), encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Benchmark, "options", Options(level="core"))


def test_the_operator_name_comes_before_its_class(tmp_path: Path) -> None:
    bench = Narrow("mine", nothing, nothing)
    bench.set_shapes(shape_file(tmp_path, {"Narrow": {"shapes": [[2]]}, "mine": {"shapes": [[1]], "shape_desc": "N"}}))
    assert (bench.shapes, bench.shape_desc) == ([(1,)], "N")


def test_the_nearest_class_along_the_mro_comes_next(tmp_path: Path) -> None:
    bench = Narrow("mine", nothing, nothing)
    bench.set_shapes(shape_file(tmp_path, {"Benchmark": {"shapes": [[3]]}, "BlasBenchmark": {"shapes": [[2]]}}))
    assert bench.shapes == [(2,)]


def test_an_operator_that_the_shape_file_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no shapes for mine: none of mine, Narrow, BlasBenchmark, Benchmark"):
        Narrow("mine", nothing, nothing).set_shapes(shape_file(tmp_path, {"other": {"shapes": [[1]]}}))


def test_a_shape_file_in_another_language_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"shapes\.json is not JSON"):
        Narrow("mine", nothing, nothing).set_shapes(shape_file(tmp_path, "mine:\n  shapes: []\n"))


@pytest.mark.parametrize("op", OPS)
def test_core_is_where_comprehensive_begins(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark_of(op, monkeypatch)
    bench.set_shapes(str(CORE_SHAPES))
    small = bench.shapes
    monkeypatch.setattr(Benchmark, "options", Options(level="comprehensive"))
    bench.set_shapes(str(CORE_SHAPES))
    assert 2 <= len(small) <= 5
    assert bench.shapes[: len(small)] == small
    assert len(small) < len(bench.shapes) == len(set(bench.shapes))


@pytest.mark.parametrize("op", OPS)
def test_no_two_rows_look_alike_and_no_tensor_exceeds_256_mib(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Benchmark, "options", Options(level="comprehensive"))
    bench = benchmark_of(op, monkeypatch)
    bench.init_user_config()
    for dtype in bench.to_bench_dtypes:
        rows = [bench.unpack_to_args_kwargs(item) for item in bench.get_input_iter(dtype)]
        shapes = [str(bench.record_shapes(*args, **kwargs)) for args, kwargs in rows]
        assert len(set(shapes)) == len(shapes) >= len(bench.shapes)
        assert max(item.nbytes for args, _ in rows for item in args if isinstance(item, torch.Tensor)) <= 1 << 28


@pytest.mark.parametrize("op", OPS)
def test_the_operator_and_its_reference_have_results_of_one_shape(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = benchmark_of(op, monkeypatch)
    bench.set_shapes(str(CORE_SHAPES))
    args, kwargs = bench.unpack_to_args_kwargs(next(bench.get_input_iter(bench.dtypes[0])))
    monkeypatch.setattr("triton.runtime.jit.JITFunction.run", nothing)
    monkeypatch.setattr("triton.runtime.autotuner.Autotuner.run", nothing)
    got, expected = (function(*args, **kwargs) for function in (bench.gems_op, bench.torch_op))
    if isinstance(got, torch.Tensor):
        got, expected = (got,), (expected,)
    assert [(item.shape, item.dtype) for item in got] == [(item.shape, item.dtype) for item in expected]


def test_a_dtype_that_the_operator_does_not_take_is_refused_by_name() -> None:
    bench = Narrow("mine", nothing, nothing)
    with pytest.raises(ValueError, match="mine does not take dtype int8, float12; it takes float16, float32, bfloat16"):
        bench.set_dtypes(["float16", "int8", "float12"])


def test_named_dtypes_are_the_only_ones_timed() -> None:
    bench = Narrow("mine", nothing, nothing)
    bench.set_dtypes(["bfloat16"])
    assert bench.to_bench_dtypes == [torch.bfloat16]


def test_a_failing_shape_fails_the_test_by_operator_dtype_and_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(left: torch.Tensor, right: torch.Tensor) -> None:
        raise RuntimeError("out of luck")

    shapes = shape_file(tmp_path, {"mine": {"shapes": [[1, 2, 3, 4]]}})
    monkeypatch.setattr(Benchmark, "options", Options("core", shape_file=shapes, metrics=("latency",)))
    monkeypatch.setattr(triton.testing, "do_bench", lambda call, **_: call())
    with pytest.raises(pytest.fail.Exception) as caught:
        Narrow("mine", nothing, gems_op=failing).run()
    assert str(caught.value) == "mine float16 [[1,2,4],[1,4,3]]: RuntimeError: out of luck"


def test_inputs_that_cannot_be_made_fail_the_test_by_their_shape() -> None:
    bench = Narrow("mine", nothing, nothing)
    bench.shapes = [(1, 2, 3)]
    with pytest.raises(pytest.fail.Exception, match=r"mine float16 \(1, 2, 3\) inputs: ValueError"):
        next(bench.get_input_iter(torch.float16))


def test_only_the_metrics_asked_for_are_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    timed: list[str] = []
    shapes = shape_file(tmp_path, {"mine": {"shapes": [[1, 2, 3, 4]]}})
    options = Options("core", 1, 2, dtypes=("float32",), shape_file=shapes, metrics=("latency",))
    monkeypatch.setattr(Benchmark, "options", options)
    monkeypatch.setattr(triton.testing, "do_bench", lambda call, **keywords: (call(), timed.append(keywords), 0.5)[2])
    Narrow("mine", lambda *_: timed.append("base"), lambda *_: timed.append("mine")).run()
    assert timed == ["mine", {"warmup": 1, "rep": 2, "return_mode": "median"}]
    assert capsys.readouterr().out == "SUCCESS mine float32 latency_ms=0.5 shape=[[1,2,4],[1,4,3]]\n"


def test_both_sides_of_a_switch_see_the_same_numbers() -> None:
    bench = Narrow("mine", nothing, nothing)
    bench.device, bench.shapes = "cpu", [(1, 2, 3, 4)]
    first, second = (next(bench.get_input_iter(torch.float32)) for _ in range(2))
    assert all(map(torch.equal, first, second))


def test_the_protocol_module_has_the_name_that_plugins_look_for_and_one_copy() -> None:
    """A second copy would be the one a plugin wraps, and no row would come from it."""
    source = CORE_SHAPES.parent / "base.py"
    copies = [name for name, module in sys.modules.items() if getattr(module, "__file__", None) == str(source)]
    assert copies == ["benchmark.base"]
