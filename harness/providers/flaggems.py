"""FlagGems: all that caliber knows of its files, generations and environment variables.

Facts as of 5.0 to the head of 2026-08; `benchmark/` comes with a git checkout only, wheels on PyPI have none.
"""

from __future__ import annotations

from pathlib import Path

from harness.providers.provider import Layout, Provider
from harness.records import Measure


def variables(scratch: Path, measure: Measure) -> dict[str, str]:
    """A private tuner database and cache per cell, and the tuner's own default configurations.

    A shared database once handed side B the winners of side A: 10 variants compiled instead of 234, published as a
    compiler result. Shared leaves both places alone, for the database lives in the cache directory. Both variables
    are read when flag_gems is imported.
    """
    default_configs = {"USE_FLAGTUNE": "0"}  # unset and with FlagTree, a cost model decides and may download models
    if measure.tuner_cache == "shared":
        return default_configs
    return default_configs | {
        "FLAGGEMS_DB_URL": f"sqlite:///{scratch}/tuner.db",
        "FLAGGEMS_CACHE_DIR": f"{scratch}/flaggems",
    }


FLAGGEMS = Provider(
    name="flaggems",
    home=None,
    cell_root="",
    layouts=(
        Layout("per_op", "benchmark.base:Benchmark", ("benchmark/base.py", "benchmark/consts.py")),
        Layout(
            "per_family",
            "benchmark.performance_utils:Benchmark",
            ("benchmark/performance_utils.py", "benchmark/attri_util.py"),
        ),
    ),
    shape_file="benchmark/core_shapes.yaml",
    python_parts=("src",),
    digested=tuple(f"{folder}/**/*.{kind}" for folder in ("benchmark", "src") for kind in ("py", "yaml", "yml")),
    variables=variables,
    remedy="a git checkout of FlagGems (its wheels hold no benchmark/)",
)
