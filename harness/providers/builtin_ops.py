"""The operators of this project (`builtin/`): benchmarks that need nothing but torch, triton and pytest.

Cells run them from the campaign's frozen copy, so that an edit during a run changes nothing.
"""

from __future__ import annotations

from pathlib import Path

from harness.providers.provider import Layout, Provider

BUILTIN = Provider(
    name="builtin",
    home=Path(__file__).resolve().with_name("builtin"),
    cell_root="frozen/harness/providers/builtin",
    layouts=(Layout("per_op", "benchmark.base:Benchmark", ("benchmark/base.py",)),),
    shape_file="benchmark/core_shapes.json",
    python_parts=("",),  # the operators are the package `builtin_ops`, beside `benchmark`
    digested=("**/*.py", "**/*.json", "*.ini"),
    variables=lambda scratch, measure: {},
    remedy="a complete installation of caliber",
)
