"""The registry, and what every provider must be, whoever adds one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness import providers
from harness.plugins import protocol
from harness.providers import Provider, ProviderError
from harness.records import ExitCode, Measure, Workload

MEASURE = Measure(
    rounds=4, level="core", shapes="file", graph="auto", direct_repeat=1, warmup_ms=50, rep_ms=70,
    tuner_cache="isolated", cell_timeout_s=60,
)  # fmt: skip
WORKLOAD = Workload("mm", "benchmark/test_mm.py::test_mm", ("float16", "float32"), "a reason")
each = pytest.mark.parametrize("provider", providers.ALL, ids=providers.NAMES)


@each
def test_a_provider_is_found_by_its_name(provider: Provider) -> None:
    assert providers.get(provider.name) is provider


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ProviderError, match="'gems' is unknown; set provider.name in config to one of builtin, flaggems"
    ):
        providers.get("gems")


def test_a_provider_refusal_is_about_the_environment() -> None:
    assert ProviderError.code is ExitCode.ENVIRONMENT


@each
def test_the_benchmark_class_is_one_that_the_timing_plugin_wraps(provider: Provider) -> None:
    for layout in provider.layouts:
        module, name = layout.benchmark_class.split(":")
        assert module in protocol.MODULES and name == "Benchmark"
        assert module.replace(".", "/") + ".py" in layout.marks


@each
def test_pytest_is_asked_for_the_operators_kernel_latency_only(provider: Provider) -> None:
    arguments = provider.pytest_args(Path("/root"), WORKLOAD, MEASURE)
    assert arguments == (
        "benchmark/test_mm.py::test_mm", "--level=core", "--mode=kernel", "--warmup=50", "--iter=70",
        "--metrics=latency", "--dtypes=float16", "--dtypes=float32", f"--shape_file={provider.shape_file}",
        "-s", "-p", "no:cacheprovider", "-p", "no:logging",
    )  # fmt: skip


@each
def test_upstream_shapes_name_no_shape_file(provider: Provider) -> None:
    measure = Measure(**{**vars(MEASURE), "shapes": "upstream"})
    assert not [item for item in provider.pytest_args(Path("/r"), WORKLOAD, measure) if "shape_file" in item]
    assert "shape_file" not in dict(provider.requirements(Path("/r"), WORKLOAD, measure))


@each
def test_the_requirements_are_named_as_preflight_names_them(provider: Provider) -> None:
    found = dict(provider.requirements(Path("/r"), WORKLOAD, MEASURE))
    assert found == {
        "provider_root": Path("/r"),
        "provider_file": Path("/r/benchmark/test_mm.py"),
        "shape_file": Path("/r") / provider.shape_file,
    }


@each
def test_a_root_that_is_no_directory_is_refused_with_its_path(provider: Provider, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(ProviderError, match=re.escape(f"{missing}: no such directory; set provider.root in config")):
        provider.check(missing, [])


@each
def test_a_root_without_benchmark_is_refused_with_its_path(provider: Provider, tmp_path: Path) -> None:
    with pytest.raises(
        ProviderError, match=re.escape(f"{tmp_path / 'benchmark'}: no such directory; set provider.root")
    ):
        provider.check(tmp_path, [])


@each
def test_the_environment_leaves_caliber_and_the_compiler_alone(provider: Provider, tmp_path: Path) -> None:
    names = provider.environment(tmp_path, MEASURE)
    assert not [name for name in names if name.startswith(("CALIBER_", "TRITON_", "PYTHON"))]
