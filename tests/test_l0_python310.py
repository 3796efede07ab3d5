"""L0 and the plugins run in vendor interpreters: Python 3.10, where nothing of ours is installed."""

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
L0 = ("records", "decoding", "codec", "stages", "locations", "elf")
PLUGINS = sorted((ROOT / "harness" / "plugins").glob("*.py"))
FILES = [ROOT / "harness" / f"{name}.py" for name in L0] + PLUGINS
MODULES = [f"harness.{name}" for name in L0] + [f"harness.plugins.{path.stem}" for path in PLUGINS]
#: -I -S: no site-packages, no PYTHON* variables, no working directory. -B: a target leaves no bytecode in the checkout.
ISOLATED = ("-I", "-S", "-B")
MANAGED = (".pyenv/versions/3.10*/bin", ".local/share/uv/python/cpython-3.10*/bin")
LOAD = "import sys, importlib; sys.path.insert(0, sys.argv[1]); importlib.import_module(sys.argv[2])"


def python310():
    """A working Python 3.10, or None. Version managers put names on PATH that only answer with an error."""
    managed = [folder for pattern in MANAGED for folder in Path.home().glob(pattern)]
    for folder in [*os.environ.get("PATH", "").split(os.pathsep), *map(str, managed)]:
        found = shutil.which("python3.10", path=folder)
        if found and run(found, "import sys; assert sys.version_info[:2] == (3, 10)").returncode == 0:
            return found
    return None


def run(python, code, *arguments):
    return subprocess.run([python, *ISOLATED, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def interpreter():
    return python310() or pytest.skip("no python3.10 on PATH, in pyenv or in uv: only the syntax was checked")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_target_side_file_is_python_310(path):
    ast.parse(path.read_text(encoding="utf-8"), path.name, feature_version=(3, 10))


@pytest.mark.parametrize("module", MODULES)
def test_a_target_side_module_loads_on_python_310_with_nothing_installed(interpreter, module):
    done = run(interpreter, LOAD, str(ROOT), module)
    assert done.returncode == 0, done.stderr


def test_a_module_that_needs_something_installed_would_not_load(interpreter, tmp_path):
    (tmp_path / "needy.py").write_text("import pytest\n")
    assert "No module named 'pytest'" in run(interpreter, LOAD, str(tmp_path), "needy").stderr
