"""probe.py, run as the script it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

PROBE = Path(__file__).parents[2] / "harness" / "plugins" / "probe.py"


def probe(cwd: Path, *arguments: str, path: str = "") -> dict:
    done = subprocess.run(
        [sys.executable, str(PROBE), *arguments], cwd=cwd, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    (line,) = done.stdout.splitlines()
    return json.loads(line)


def module(directory: Path, name: str, text: str = "") -> None:
    (directory / f"{name}.py").write_text(text, encoding="utf-8")


def test_it_answers_in_one_json_line_about_its_own_interpreter(tmp_path):
    found = probe(tmp_path, "--modules", "json,no_such_module")
    assert found["executable"] == sys.executable and found["device"] is None
    assert found["modules"]["json"]["found"] and not found["modules"]["no_such_module"]["found"]


def test_by_default_nothing_is_imported(tmp_path):
    module(tmp_path, "heavy", "raise SystemExit('imported')")
    found = probe(tmp_path, "--modules", "heavy")["modules"]["heavy"]
    assert found == {"found": True, "path": str(tmp_path / "heavy.py"), "version": "", "error": ""}


def test_import_reports_what_breaks_and_goes_on(tmp_path):
    module(tmp_path, "broken", "raise OSError('libcuda.so.1: cannot open\\nshared object file')")
    module(tmp_path, "fine", "__version__ = '3.6.0'\nprint('noise of an import')")
    found = probe(tmp_path, "--modules", "broken,fine", "--import")["modules"]
    assert found["broken"]["error"] == "OSError: libcuda.so.1: cannot open shared object file"
    assert (found["fine"]["version"], found["fine"]["error"]) == ("3.6.0", "")


def test_the_working_directory_comes_first_as_under_pytest(tmp_path):
    module(tmp_path, "session")  # also the name of a plugin beside the script
    assert probe(tmp_path, "--modules", "session")["modules"]["session"]["path"] == str(tmp_path / "session.py")


def test_plugins_beside_the_script_are_not_modules_of_the_target(tmp_path):
    assert not probe(tmp_path, "--modules", "compat_musa")["modules"]["compat_musa"]["found"]


def test_a_bare_directory_of_the_name_is_not_the_module(tmp_path):
    (tmp_path / "some_compiler" / "docs").mkdir(parents=True)
    assert not probe(tmp_path, "--modules", "some_compiler")["modules"]["some_compiler"]["found"]


def test_an_installed_module_has_its_version(tmp_path):
    assert probe(tmp_path, "--modules", "pytest")["modules"]["pytest"]["version"]


def test_a_build_on_pythonpath_does_not_borrow_the_version_of_the_installed_one(tmp_path):
    build = tmp_path / "build"
    (build / "pytest").mkdir(parents=True)
    (build / "pytest" / "__init__.py").write_text("", encoding="utf-8")
    found = probe(tmp_path, "--modules", "pytest", path=str(build))["modules"]["pytest"]
    assert (found["path"], found["version"]) == (str(build / "pytest" / "__init__.py"), "")


FAKE_TORCH = """
class Musa:
    is_available = staticmethod(lambda: {count} > 0)
    device_count = staticmethod(lambda: {count})
    get_device_name = staticmethod(lambda index: "MTT S5000")
"""


def device(directory: Path) -> dict:
    return probe(directory, "--modules", "torch", "--import", "--runtime", "musa")["device"]


def test_torch_is_asked_through_the_vendors_own_module(tmp_path):
    module(tmp_path, "torch", FAKE_TORCH.format(count=2))
    module(tmp_path, "torch_musa", "import torch\ntorch.musa = torch.Musa\n")
    assert device(tmp_path) == {"runtime": "musa", "count": 2, "name": "MTT S5000", "error": ""}


def test_a_torch_that_has_the_module_needs_no_package_beside_it(tmp_path):
    module(tmp_path, "torch", FAKE_TORCH.format(count=1) + "musa = Musa\n")
    assert device(tmp_path) == {"runtime": "musa", "count": 1, "name": "MTT S5000", "error": ""}


def test_a_torch_without_the_vendors_extension_is_an_error_not_a_crash(tmp_path):
    module(tmp_path, "torch", FAKE_TORCH.format(count=0))
    found = device(tmp_path)
    assert found["count"] == 0 and found["error"] == "ModuleNotFoundError: No module named 'torch_musa'"


def test_aot_needs_no_device(tmp_path):
    module(tmp_path, "torch")
    assert probe(tmp_path, "--modules", "torch", "--import", "--runtime", "meta")["device"] is None
