"""builtin operators: they compute what torch computes, they compile, and their benchmarks keep the protocol.

Each part runs in a process of its own, from the provider root as a cell does: whether triton interprets, and which
driver it has, is decided when it is first imported.
"""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PROVIDER = HERE.parents[1] / "harness" / "providers" / "builtin"
OPS = {path.stem.removeprefix("test_") for path in (PROVIDER / "benchmark").glob("test_*.py")}
NODES = {f"benchmark/test_{op}.py::test_{op}" for op in OPS}
#: The operators whose tiles are held in float32 too; attention takes 16-bit floats only.
BLAS = {"benchmark/test_matmul.py::test_matmul", "benchmark/test_bmm.py::test_bmm"}
#: What a caller may have set and a part must not see.
STEERING = re.compile(r"TRITON_|CALIBER_|BUILTIN_|PYTEST_|PYTHON")

pytestmark = pytest.mark.skipif(
    not (find_spec("torch") and find_spec("triton")), reason="no torch or triton here: install the extra `target`"
)


def run(*arguments, **environment):
    """(exit code, output) of pytest in the provider root."""
    inherited = {name: value for name, value in os.environ.items() if not STEERING.match(name)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=short", *map(str, arguments)],
        cwd=PROVIDER,
        env=inherited | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(HERE)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def run_beside(name, **environment):
    """The same for a test file beside this one; `python -m` puts the provider root on its import path."""
    return run("-c", "pytest.ini", f"--rootdir={PROVIDER}", "--noconftest", HERE / name, **environment)


def compiled(target, cache, *arguments):
    """Output of benchmarks run on meta tensors and compiled for `target`: the first dtype and input of each."""
    options = ("-p", "builtin_compile", "-s", "-rA", "--level=core", "--metrics=latency", *arguments)
    part = {"CALIBER_RUNTIME": "meta", "BUILTIN_TARGET": target, "BUILTIN_PART": "first"}
    return run(*options, TRITON_CACHE_DIR=str(cache), **part)[1]


def reports(output, word):
    """{node: rest of the line} of pytest's summary lines that begin with `word`."""
    return dict(re.findall(rf"^{word} (\S+)(.*)$", output, re.MULTILINE))


def test_every_operator_agrees_with_torch_in_the_interpreter():
    code, output = run_beside("builtin_correctness.py", TRITON_INTERPRET="1", CALIBER_RUNTIME="cpu")
    assert code == 0, output


@pytest.mark.gpu
def test_every_operator_agrees_with_torch_on_the_gpu():
    code, output = run_beside("builtin_correctness.py", CALIBER_RUNTIME=os.environ.get("CALIBER_RUNTIME", "cuda"))
    assert code == 0, output


def test_every_operator_is_checked_against_torch():
    table = json.loads((HERE / "builtin_odd_shapes.json").read_text(encoding="utf-8"))
    assert set(table) == OPS


def test_every_benchmark_keeps_the_protocol():
    code, output = run_beside("builtin_protocol.py", CALIBER_RUNTIME="meta")
    assert code == 0, output


def test_every_benchmark_is_collected_as_one_test_marked_with_its_operator():
    code, output = run("--collect-only", "-m", " or ".join(OPS), "benchmark", CALIBER_RUNTIME="meta")
    assert code == 0, output
    assert set(re.findall(r"^benchmark/\S+::\S+$", output, re.MULTILINE)) == NODES


def test_every_operator_compiles_for_hopper_without_a_gpu(tmp_path):
    output = compiled("cuda:90:32", tmp_path, "benchmark")
    assert not reports(output, "FAILED"), output
    assert set(reports(output, "PASSED")) == NODES, output
    assert output.count("COMPILED ") >= len(OPS)


def test_every_candidate_fits_the_shared_memory_of_an_h200_at_the_widest_dtype(tmp_path):
    output = compiled("cuda:90:32", tmp_path, "--dtypes=float32", *sorted(BLAS))
    assert set(reports(output, "PASSED")) == BLAS, output
    assert re.findall("COMPILED (matmul|bmm)_kernel", output) == ["bmm"] * 3 + ["matmul"] * 4, output
    assert "DOES_NOT_FIT" not in output
