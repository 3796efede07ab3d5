"""The builtin provider: carried along, frozen with the campaign."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness import providers, seal
from harness.providers import ProviderError
from harness.records import Workload
from tests.providers.test_registry import MEASURE

BUILTIN = providers.get("builtin")
ROOT = BUILTIN.locate(None)


def test_it_is_at_home_beside_its_module() -> None:
    assert ROOT == Path(providers.__file__).resolve().parent / "builtin"


def test_a_configured_root_is_refused_for_it_would_be_ignored() -> None:
    with pytest.raises(ProviderError, match=r"builtin has a root of its own; drop provider.root \(/x\)"):
        BUILTIN.locate("/x")


def test_cells_find_it_in_the_frozen_copy(tmp_path: Path) -> None:
    seen = BUILTIN.as_seen_by_cells(ROOT, "sha256:d")
    assert (seen.name, seen.digest) == ("builtin", "sha256:d")
    seal.freeze(tmp_path)
    frozen = tmp_path / seen.root
    BUILTIN.check(frozen, [Workload("add", "benchmark/test_add.py::test_add")])
    assert BUILTIN.digest(frozen) == BUILTIN.digest(ROOT)
    assert (frozen / BUILTIN.shape_file).is_file()


def test_its_operators_are_importable_from_its_python_path() -> None:
    (part,) = BUILTIN.python_path(ROOT)
    assert (Path(part) / "builtin_ops" / "__init__.py").is_file()


def test_it_sets_no_variable(tmp_path: Path) -> None:
    assert BUILTIN.environment(tmp_path, MEASURE) == {}


@pytest.mark.parametrize(
    "name", ["benchmark/test_add.py", "builtin_ops/add.py", "benchmark/core_shapes.json", "pytest.ini"]
)
def test_an_edit_of_what_decides_a_latency_changes_the_digest(tmp_path: Path, name: str) -> None:
    copy = tmp_path / "builtin"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert BUILTIN.digest(copy) == BUILTIN.digest(ROOT)
    with open(copy / name, "a", encoding="utf-8") as stream:
        stream.write("\n")
    assert BUILTIN.digest(copy) != BUILTIN.digest(ROOT)
