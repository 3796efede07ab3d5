"""The command line of a benchmark run, in the words of FlagGems' benchmarks; it only fills `Benchmark.options`."""

from pathlib import Path

import pytest

from .base import CORE_SHAPES, METRICS, Benchmark, Options


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("benchmark")
    group.addoption("--level", choices=["core", "comprehensive"], default="comprehensive")
    group.addoption("--mode", choices=["kernel"], default="kernel", help="what is timed: the device kernel")
    group.addoption("--warmup", type=float, default=25.0, metavar="MS", help="warm-up before each row")
    group.addoption("--iter", type=float, default=100.0, metavar="MS", help="measured time of each row")
    group.addoption("--dtypes", action="append", default=[], metavar="DTYPE", help="repeatable; default: all")
    group.addoption("--metrics", action="append", choices=METRICS, default=[], help="repeatable; default: all")
    group.addoption("--shape_file", default=str(CORE_SHAPES), metavar="JSON", help="shapes by operator or class")


def pytest_configure(config: pytest.Config) -> None:
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        op = path.stem.removeprefix("test_")
        config.addinivalue_line("markers", f"{op}: the benchmark of operator {op}")
    Benchmark.options = Options(
        level=config.getoption("--level"),
        warmup_ms=config.getoption("--warmup"),
        rep_ms=config.getoption("--iter"),
        dtypes=tuple(config.getoption("--dtypes")),
        metrics=tuple(config.getoption("--metrics")) or METRICS,
        shape_file=config.getoption("--shape_file"),
    )
