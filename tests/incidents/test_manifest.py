"""Incidents that manifests and providers must not repeat (facts: incidents)."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import manifest, providers
from harness.manifest import ManifestError
from harness.providers import ProviderError, key
from harness.records import Measure, Workload
from tests.providers.test_flaggems import FLAGGEMS, PER_OP
from tests.providers.test_registry import MEASURE

HEAD = "manifest: m\nprovider: builtin\nworkloads:\n"
ADD = '  - {op: add, node: "benchmark/test_add.py::test_add"}\n'


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "m.yaml"
    path.write_bytes(data)
    return path


def test_a_workload_is_never_narrowed_in_silence(tmp_path: Path) -> None:
    """An exclusion nobody could review."""
    narrowed = ADD.replace("}", ", dtypes: [float16]}")
    with pytest.raises(ManifestError, match="m.yaml:4: dtypes: op 'add' is narrowed without a reason"):
        manifest.load(write(tmp_path, (HEAD + narrowed).encode()))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_another_encoding_is_named_never_an_empty_list(tmp_path: Path, encoding: str) -> None:
    """A UTF-16LE input gave an empty report and exit code 0."""
    bom = b"\xff\xfe" if encoding == "utf-16-le" else b""
    with pytest.raises(ManifestError, match="m.yaml: (is UTF-16; convert it to UTF-8|starts with a byte order mark)"):
        manifest.load(write(tmp_path, bom + (HEAD + ADD).encode(encoding)))


def test_rewritten_line_ends_break_no_seal(tmp_path: Path) -> None:
    """Git's autocrlf rewrote files and changed every recorded digest."""
    path = write(tmp_path, (HEAD + ADD).encode())
    digest = manifest.seal(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert manifest.load(path).digest == digest


def test_a_wrong_checkout_is_refused_by_name_before_pytest_sees_it(tmp_path: Path) -> None:
    """pytest said "unrecognized arguments: --level core --mode kernel"."""
    for root in (tmp_path / "nowhere", PER_OP / "benchmark", PER_OP / "src"):
        with pytest.raises(ProviderError, match="set provider.root in config"):
            FLAGGEMS.check(root, [])


def test_the_key_of_a_node_is_its_function_never_its_file() -> None:
    """A deny list keyed by file name ("unique") failed open; the function was test_unique2."""
    assert {key(node) for node in FLAGGEMS.tests(PER_OP)} == {"delta_rule", "mm", "mm_out", "unique2"}


def test_a_node_is_named_from_the_root_of_the_checkout() -> None:
    """Run inside benchmark/, pytest does not know the options of benchmark/conftest.py."""
    node = FLAGGEMS.pytest_args(PER_OP, Workload("mm", "benchmark/test_mm.py::test_mm"), MEASURE)[0]
    assert (PER_OP / node.split("::")[0]).is_file()


def test_no_two_cells_share_a_tuner_database(tmp_path: Path) -> None:
    """The second run inherited the first one's winners: 945 variants became 33, published as a compiler result."""
    cells = [tmp_path / name / "scratch" for name in ("r1_A", "r1_B", "r2_A")]
    for variable in ("FLAGGEMS_DB_URL", "FLAGGEMS_CACHE_DIR"):
        assert len({FLAGGEMS.environment(cell, MEASURE)[variable] for cell in cells}) == len(cells)


@pytest.mark.parametrize("level", ["core", "comprehensive"])
@pytest.mark.parametrize("name", providers.NAMES)
def test_the_level_is_the_configured_one(name: str, level: str) -> None:
    """Hardcoded to core, the large GEMMs were out of reach."""
    measure = Measure(**{**vars(MEASURE), "level": level})
    arguments = providers.get(name).pytest_args(PER_OP, Workload("mm", "benchmark/test_mm.py::test_mm"), measure)
    assert f"--level={level}" in arguments


@pytest.mark.parametrize("name", providers.NAMES)
def test_a_speedup_over_torch_is_never_asked_for(name: str) -> None:
    """The speedup column compares an operator with torch, not one compiler with another."""
    arguments = providers.get(name).pytest_args(PER_OP, Workload("mm", "benchmark/test_mm.py::test_mm"), MEASURE)
    assert [item for item in arguments if item.startswith("--metrics")] == ["--metrics=latency"]


def test_pytests_log_handlers_are_not_there_for_a_provider_to_take():
    """FlagGems 5.0 writes its record through the first handler it finds; pytest's has no file, and the test failed."""
    arguments = FLAGGEMS.pytest_args(PER_OP, Workload("mm", "benchmark/test_mm.py::test_mm"), MEASURE)
    assert "no:logging" in arguments
