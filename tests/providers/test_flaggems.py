"""FlagGems: two generations told apart by looking, and a tuner that is each cell's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from harness import providers
from harness.providers import ProviderError, key
from harness.records import Measure, Workload
from tests.providers.test_registry import MEASURE

FLAGGEMS = providers.get("flaggems")
FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
PER_OP, PER_FAMILY = FIXTURES / "flaggems_per_op", FIXTURES / "flaggems_per_family"
MM = Workload("mm", "benchmark/test_mm.py::test_mm")
SHARED = Measure(**{**vars(MEASURE), "tuner_cache": "shared"})


def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PER_OP, tmp_path / "gems"))


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(root), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def committed(tmp_path: Path) -> tuple[Path, str]:
    """A clean checkout and its commit."""
    root = copy(tmp_path)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "all")
    return root, git(root, "rev-parse", "HEAD")


def test_a_root_is_required() -> None:
    with pytest.raises(ProviderError, match="flaggems has no root; set provider.root in config to a git checkout"):
        FLAGGEMS.locate(None)


def test_a_root_that_is_not_there_is_refused_by_its_absolute_path(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=re.escape(f"{tmp_path / 'gems'}: no such directory; set provider.root")):
        FLAGGEMS.locate(str(tmp_path / "x" / ".." / "gems"))


def test_a_root_is_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FIXTURES)
    assert FLAGGEMS.locate("flaggems_per_op") == PER_OP


@pytest.mark.parametrize(
    ("root", "name", "benchmark_class"),
    [
        (PER_OP, "per_op", "benchmark.base:Benchmark"),
        (PER_FAMILY, "per_family", "benchmark.performance_utils:Benchmark"),
    ],
)
def test_the_layout_is_decided_by_looking(root: Path, name: str, benchmark_class: str) -> None:
    layout = FLAGGEMS.layout(root)
    assert (layout.name, layout.benchmark_class) == (name, benchmark_class)


def test_a_benchmark_directory_of_no_known_layout_is_refused_with_what_was_looked_for(tmp_path: Path) -> None:
    root = copy(tmp_path)
    (root / "benchmark" / "consts.py").unlink()
    with pytest.raises(
        ProviderError, match=r"has no benchmark/base.py with .*consts.py, nor benchmark/performance_utils"
    ):
        FLAGGEMS.check(root, [MM])


def test_a_complete_checkout_is_accepted() -> None:
    FLAGGEMS.check(PER_OP, [MM, Workload("delta_rule", "benchmark/nested/test_delta_rule.py::test_delta_rule")])
    FLAGGEMS.check(PER_FAMILY, [Workload("mm", "benchmark/test_blas_perf.py::test_blas_benchmark[mm]")])


def test_a_node_of_the_other_layout_is_refused_with_the_layout_found() -> None:
    with pytest.raises(
        ProviderError, match=r"benchmark/test_mm.py: no such file, but op mm names it \(layout per_family\)"
    ):
        FLAGGEMS.check(PER_FAMILY, [MM])


def test_a_node_in_the_wrong_file_is_refused_with_the_right_one() -> None:
    wrong = Workload("unique2", "benchmark/test_unique2.py::test_unique2")
    with pytest.raises(
        ProviderError, match=r"it has benchmark/test_unique.py::test_unique2\).*provider.root in config"
    ):
        FLAGGEMS.check(PER_OP, [wrong])


def test_only_the_file_half_of_a_node_is_checked() -> None:
    FLAGGEMS.check(PER_OP, [Workload("mm", "benchmark/test_mm.py::test_no_such_test")])


def test_the_known_nodes_are_the_module_level_tests_found_without_importing() -> None:
    assert FLAGGEMS.tests(PER_OP) == (
        "benchmark/nested/test_delta_rule.py::test_delta_rule",
        "benchmark/test_mm.py::test_mm",
        "benchmark/test_mm.py::test_mm_out",
        "benchmark/test_unique.py::test_unique2",
    )
    assert FLAGGEMS.tests(PER_FAMILY) == ("benchmark/test_blas_perf.py::test_blas_benchmark",)


def test_a_benchmark_that_is_not_python_is_refused_with_its_line(tmp_path: Path) -> None:
    root = copy(tmp_path)
    (root / "benchmark" / "test_mm.py").write_text("<<<<<<< HEAD\n", encoding="utf-8")
    with pytest.raises(ProviderError, match=r"test_mm.py:1: not Python: .*set provider.root"):
        FLAGGEMS.tests(root)


def test_an_isolated_cell_has_a_tuner_database_and_cache_of_its_own(tmp_path: Path) -> None:
    one, two = (FLAGGEMS.environment(tmp_path / name, MEASURE) for name in ("one", "two"))
    assert one == {
        "USE_FLAGTUNE": "0",
        "FLAGGEMS_DB_URL": f"sqlite:///{tmp_path}/one/tuner.db",
        "FLAGGEMS_CACHE_DIR": f"{tmp_path}/one/flaggems",
    }
    assert {name for name in one if one[name] == two[name]} == {"USE_FLAGTUNE"}


def test_a_shared_tuner_is_the_users_own(tmp_path: Path) -> None:
    assert FLAGGEMS.environment(tmp_path, SHARED) == {"USE_FLAGTUNE": "0"}


def test_cells_see_the_checkout_itself() -> None:
    seen = FLAGGEMS.as_seen_by_cells(PER_OP, "abc")
    assert (seen.name, seen.root, seen.digest) == ("flaggems", str(PER_OP), "abc")
    assert FLAGGEMS.python_path(PER_OP) == (str(PER_OP / "src"),)


def test_the_digest_of_a_clean_checkout_is_its_commit(tmp_path: Path) -> None:
    root, commit = committed(tmp_path)
    assert FLAGGEMS.digest(root) == commit


@pytest.mark.parametrize("name", ["src/flag_gems/__init__.py", "benchmark/core_shapes.yaml", "src/flag_gems/new.py"])
def test_the_digest_of_an_edited_checkout_is_that_of_its_files(tmp_path: Path, name: str) -> None:
    root, _ = committed(tmp_path)
    git(root, "config", "status.showUntrackedFiles", "no")  # as some people have it
    with open(root / name, "a", encoding="utf-8") as stream:
        stream.write("\n")
    edited = FLAGGEMS.digest(root)
    shutil.rmtree(root / ".git")
    assert edited == FLAGGEMS.digest(root) != FLAGGEMS.digest(PER_OP)
    assert edited.startswith("sha256:")


def test_what_runs_leave_behind_does_not_change_the_digest(tmp_path: Path) -> None:
    root, commit = committed(tmp_path)
    (root / "result_--level_core.log").write_text("", encoding="utf-8")
    (root / "src" / "flag_gems" / "cached.pyc").write_text("", encoding="utf-8")
    assert FLAGGEMS.digest(root) == commit


def test_a_checkout_inside_another_repository_is_not_that_repository(tmp_path: Path) -> None:
    root = copy(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "all")
    assert FLAGGEMS.digest(root).startswith("sha256:")


def test_a_git_that_is_not_there_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, _ = committed(tmp_path)
    monkeypatch.setenv("PATH", "")
    assert FLAGGEMS.digest(root) == FLAGGEMS.digest(PER_OP)


def test_the_git_variables_of_a_hook_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, commit = committed(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert FLAGGEMS.digest(root) == commit


def test_the_key_of_a_node_has_no_file_and_no_parameters() -> None:
    assert key("benchmark/test_blas_perf.py::test_blas_benchmark[mm]") == "blas_benchmark"


@pytest.mark.skipif("CALIBER_FLAGGEMS" not in os.environ, reason="CALIBER_FLAGGEMS names no FlagGems checkout")
def test_a_real_checkout_has_a_layout_a_shape_file_and_a_steady_digest() -> None:
    root = FLAGGEMS.locate(os.environ["CALIBER_FLAGGEMS"])
    FLAGGEMS.check(root, [])
    assert (root / FLAGGEMS.shape_file).is_file()
    started = time.process_time()
    first = FLAGGEMS.digest(root)
    print(f"digest of {root}: {first} in {time.process_time() - started:.2f} s of processor time")
    assert first == FLAGGEMS.digest(root)
