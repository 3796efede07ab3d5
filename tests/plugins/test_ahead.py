import dataclasses
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from triton.backends.compiler import GPUTarget

from harness import codec, fingerprint
from harness.compilations import Ahead, Specialization
from harness.plugins import ahead
from harness.records import Cell, Provider, Side
from tests.plugins.target import ON_FAKE_DEVICE, REPOSITORY, Ran, make_cell, run

pytestmark = pytest.mark.slow

OPS = "double or scale or shift or both or halved or filled"


def cell_of(side: str = "A", **changes) -> Cell:
    return make_cell(**ON_FAKE_DEVICE, side=Side(side, sys.executable, (), {}), **changes)


@pytest.fixture(scope="session")
def recorded(place) -> Ran:
    """Round 0 on the fake device, which notes what its rows launched."""
    return run(place / "ahead_r0", OPS, cell_of(round=0))


def cache(directory: Path) -> dict[str, str]:
    (directory / "triton").mkdir(parents=True)
    return {"TRITON_CACHE_DIR": str(directory / "triton"), "CALIBER_CACHE_STAMP": str(directory / "stamp.json")}


def compile_ahead(recorded: Ran, cell: Cell, root: Path | None = None, **env: str) -> Ahead:
    """What the runner does for one side: its own interpreter and environment, no pytest."""
    place = Path(env["TRITON_CACHE_DIR"]).parent / "ahead"
    place.mkdir()
    codec.write(place / "cell.json", cell)
    own = {
        "CALIBER_CELL": str(place / "cell.json"),
        "CALIBER_ATTEMPT": str(place),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), cell.provider.root, os.environ.get("PYTHONPATH", "")]),
    }
    wanted, result = recorded.attempt / "specializations.jsonl", place / "result.json"
    done = subprocess.run(
        [cell.side.python, "-m", "harness.plugins.ahead", f"--specializations={wanted}", f"--result={result}"],
        cwd=root or cell.provider.root, env={**os.environ, **own, **env}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return codec.read(Ahead, result)


@pytest.mark.parametrize("switch", [{}, {"TRITON_DEFAULT_FP_FUSION": "0"}, {"TRITON_DEBUG": "1"}])
def test_a_measured_cell_of_either_side_compiles_nothing_that_was_compiled_ahead(tmp_path, recorded, switch):
    env = {**cache(tmp_path / "double" / "cache_B"), **switch}
    cell = cell_of("B", autotune="replay")
    found = compile_ahead(recorded, cell, **env)
    assert found.missing == {} and found.compiled == found.asked > 0, found
    record = recorded.attempt / "autotune.json"
    measured = run(tmp_path / "r1", OPS, cell, record=record, **env)
    assert measured.fingerprint.compile_count == 0 and measured.fingerprint.cache_hits == found.asked
    assert measured.identity.compile_cache == "side"
    fresh = run(tmp_path / "fresh", OPS, cell, record=record, **switch)
    assert fresh.fingerprint.compile_count == found.asked
    gate = fingerprint.gate("double", measured.fingerprint, fresh.fingerprint)
    assert gate.verdict == "NO_CODE_CHANGE", "what was compiled ahead is what the cell would have compiled"


def test_what_rows_launched_is_recorded_and_what_made_their_inputs_and_not_the_losers(recorded):
    wanted = list(codec.read_lines(Specialization, recorded.attempt / "specializations.jsonl"))
    launched = [variant for variant in recorded.fingerprint.variants if variant.launched]
    assert len(wanted) == len(launched) + 1 < recorded.fingerprint.compile_count
    assert {item.kernel for item in wanted} == {variant.kernel for variant in launched} | {"fill_kernel"}
    options = [json.loads(item.data)["options"] for item in wanted]
    assert all(set(own) <= {"num_warps", "num_stages", "num_ctas"} for own in options), "defaults are each side's own"


def test_a_measured_cell_records_nothing(device_replay):
    assert not (device_replay.attempt / "specializations.jsonl").exists()


def test_a_second_step_finds_all_and_a_foreign_cache_is_left_alone(tmp_path, recorded):
    env, cell = cache(tmp_path / "double" / "cache_A"), cell_of()
    first = compile_ahead(recorded, cell, **env)
    (tmp_path / "double" / "cache_A" / "ahead").rename(tmp_path / "earlier")
    second = compile_ahead(recorded, cell, **env)
    assert (second.compiled, second.cached) == (0, first.compiled)
    (tmp_path / "double" / "cache_A" / "ahead").rename(tmp_path / "second")
    (tmp_path / "double" / "cache_A" / "stamp.json").unlink()
    third = compile_ahead(recorded, cell, **env)
    assert (third.compiled, third.cached) == (0, 0) and "no cache of this side's own" in third.reason


def test_a_kernel_that_cannot_be_reached_is_named_and_the_others_are_compiled(tmp_path, recorded):
    wanted = list(codec.read_lines(Specialization, recorded.attempt / "specializations.jsonl"))
    lost = [
        dataclasses.replace(wanted[0], kernel="make.<locals>.kernel"),
        dataclasses.replace(wanted[0], module="no_such_module"),
        dataclasses.replace(wanted[0], data=wanted[-1].data),
    ]
    other = Ran(0, "", tmp_path)
    (tmp_path / "specializations.jsonl").write_text("".join(codec.dumps(item) + "\n" for item in [*lost, *wanted]))
    found = compile_ahead(other, cell_of(), **cache(tmp_path / "double" / "cache_A"))
    assert found.compiled == len(wanted) and found.asked == len(wanted) + 3
    assert set(found.missing) == {f"{item.module}.{item.kernel}" for item in lost}
    assert "can be reached from outside" in found.missing[f"{lost[0].module}.{lost[0].kernel}"]
    assert found.missing[f"no_such_module.{lost[1].kernel}"].startswith("ModuleNotFoundError")


def test_a_builtin_operator_is_compiled_ahead_whole(tmp_path):
    root = REPOSITORY / "harness/providers/builtin"
    changes = {"op": "softmax", "provider": Provider("builtin", str(root), ""), "pytest_args": ("--dtypes=float16",)}
    own = {"file": "benchmark/test_softmax.py", "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{root}"}
    zero = run(tmp_path / "r0", "softmax", cell_of(round=0, **changes), **own)
    env, cell = cache(tmp_path / "softmax" / "cache_A"), cell_of(autotune="replay", **changes)
    found = compile_ahead(zero, cell, **env)
    assert found.compiled == found.asked > 1 and found.missing == {}
    measured = run(tmp_path / "r1", "softmax", cell, record=zero.attempt / "autotune.json", **own, **env)
    assert measured.rc == 0 and measured.rows, measured.log
    assert (measured.fingerprint.compile_count, measured.fingerprint.cache_hits) == (0, found.asked)


GENERATOR = REPOSITORY / "tests/fixtures/plugins/generator"


def launch_generated(attempt: Path, target: str, **env: str) -> str:
    """Launch the generated kernel in a process of its own; "compiled hits"."""
    attempt.mkdir()
    codec.write(attempt / "cell.json", cell_of(round=0))
    own = {"CALIBER_CELL": str(attempt / "cell.json"), "CALIBER_ATTEMPT": str(attempt), "GENERATOR_TARGET": target}
    own |= {"GENERATOR_CACHE": str(attempt / "scratch"), "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "served.py"], cwd=GENERATOR, env={**os.environ, **own, **env}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[-2]


@pytest.mark.parametrize("target", ["cuda:90:32", "hip:gfx942:64"])
def test_a_generated_kernel_is_compiled_ahead_though_its_generator_wrote_it_elsewhere(tmp_path, target):
    fresh = {"TRITON_CACHE_DIR": str(tmp_path / "r0_cache")}
    assert launch_generated(tmp_path / "r0", target, **fresh) == "1 0"
    (wanted,) = codec.read_lines(Specialization, tmp_path / "r0" / "specializations.jsonl")
    assert (wanted.module, wanted.overlaid) == ("_gen_module_halve", "served")
    for path in (tmp_path / "r0" / "scratch").iterdir():
        path.unlink()  # as the runner does
    env = cache(tmp_path / "double" / "cache_A")
    found = compile_ahead(Ran(0, "", tmp_path / "r0"), cell_of(), GENERATOR, **env)
    assert (found.compiled, found.missing) == (1, {})
    assert launch_generated(tmp_path / "r1", target, **env) == "0 1"


class Recording:
    built = []

    def __init__(self, source, metadata):
        if metadata == "unbuildable":
            raise RuntimeError("no C compiler")
        self.built.append((source, metadata))


def backend(own, driver):
    compiler = SimpleNamespace(supports_target=lambda target: target.backend == own)
    return SimpleNamespace(compiler=compiler, driver=driver)


def fails():
    raise AssertionError("libcuda.so cannot found!")


def test_a_launcher_is_built_by_the_driver_of_the_target_and_left_to_the_cell_where_that_fails(monkeypatch):
    backends = importlib.import_module("triton.backends").backends
    monkeypatch.setitem(backends, "nvidia", backend("cuda", lambda: SimpleNamespace(launcher_cls=Recording)))
    monkeypatch.setitem(backends, "amd", backend("hip", fails))
    launcher = ahead.launcher_of(GPUTarget("cuda", 90, 32))
    assert launcher is Recording
    for metadata in ("unbuildable", "metadata"):
        ahead.build_launcher(launcher, SimpleNamespace(src="source", metadata=metadata))
    assert Recording.built == [("source", "metadata")]
    none = ahead.launcher_of(GPUTarget("hip", "gfx942", 64))
    assert none is None and ahead.build_launcher(none, SimpleNamespace()) is None
