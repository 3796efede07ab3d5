"""packaging: one environment, said once; and the developer's commands, on machines that lack something."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness import __main__

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = {
    canonicalize_name(line.partition("==")[0]): line.partition("==")[2]
    for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
}
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUNTIME = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
DIRECT = [
    *RUNTIME,
    *(Requirement(text) for extra in EXTRAS.values() for text in extra),
    *map(Requirement, PROJECT["build-system"]["requires"]),
]
#: What the CUDA build of torch brings along, by its own exact pins; the CPU build has none of it.
CUDA_ONLY = re.compile(r"(nvidia|cuda)-(?!ml-py)")
#: Modules whose distribution has another name.
DISTRIBUTIONS = {"yaml": "pyyaml", "pynvml": "nvidia-ml-py"}


def needed(names):
    """Names of everything installed that `names` need, here, now."""
    found, todo = set(), list(names)
    while todo:
        name = canonicalize_name(todo.pop())
        if name not in found and not CUDA_ONLY.match(name):
            found.add(name)
            asked = map(Requirement, distribution(name).requires or ())
            todo.extend(item.name for item in asked if item.marker is None or item.marker.evaluate({"extra": ""}))
    return found


def imported(path):
    """First names of the modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


def make(folder, *arguments, path=None):
    """`make` with this project's Makefile, in `folder`."""
    shutil.copy(ROOT / "Makefile", folder)
    environ = {"PATH": path or os.environ["PATH"], "LC_ALL": "C"}  # no variable of a make that runs these tests
    return subprocess.run(["make", *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=60)


def fake_python(folder, name, *answers):
    """An interpreter that fails every `-c` text holding one of `answers`, and calls itself Python 3.9."""
    cases = "".join(f'*"{answer}"*) exit 1;; ' for answer in answers)
    script = folder / name
    script.write_text(f'#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2\ncase "$*" in {cases}esac\n')
    script.chmod(0o755)
    return script


@pytest.fixture
def bare_path(tmp_path):
    """A PATH on which no Python is found: only what the Makefile's shell lines use."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "tail", "touch", "awk", "echo", "make"):
        (folder / tool).symlink_to(shutil.which(tool))
    return folder


@pytest.mark.parametrize("direct", DIRECT, ids=lambda requirement: requirement.name)
def test_the_lock_pins_what_pyproject_asks_for(direct):
    pinned = LOCK[canonicalize_name(direct.name)]
    assert direct.specifier.contains(pinned), f"{direct} in pyproject.toml, =={pinned} in the lock: run `make lock`"


def test_the_lock_is_closed():
    assert needed(direct.name for direct in DIRECT) - LOCK.keys() == set()


def test_the_lock_pins_nothing_that_nobody_asked_for():
    assert LOCK.keys() - needed(direct.name for direct in DIRECT) == set()


def test_the_lock_holds_plain_versions_for_every_machine():
    """No local version, address or marker: the same file serves a CPU box and a CUDA box, Python 3.11 and 3.12."""
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in LOCK.values())
    assert not [name for name in LOCK if CUDA_ONLY.match(name)]


@pytest.mark.parametrize("name", ["snakemake", "torch", "triton"])
def test_the_pins_that_a_number_rests_on_are_exact_everywhere(name):
    asked = [direct for direct in DIRECT if direct.name == name]
    assert [str(direct.specifier) for direct in asked] == [f"=={LOCK[name]}"]


def test_conda_users_get_the_same_lock():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    python, pip, through_pip = dependencies
    assert through_pip == {"pip": ["-r requirements.lock", "-e ."]}
    assert (Requirement(python).name, pip) == ("python", "pip")
    floor = PROJECT["project"]["requires-python"]
    assert floor.removeprefix(">=") in str(Requirement(python).specifier)


def test_every_package_the_harness_imports_is_declared():
    """An orchestrator without the extras must run: what only `target` and `dev` bring may not be imported."""
    declared = {canonicalize_name(item.name) for item in RUNTIME}
    target_side = {ROOT / "harness" / folder for folder in ("plugins", "providers/builtin")}
    files = [path for path in (ROOT / "harness").rglob("*.py") if not target_side & set(path.parents)]
    foreign = {name for path in files for name in imported(path)} - sys.stdlib_module_names - {"harness"}
    assert {DISTRIBUTIONS.get(name, name) for name in foreign} <= declared


def test_the_command_line_starts_where_pyproject_says():
    assert PROJECT["project"]["scripts"] == {"caliber": f"{__main__.__name__}:{__main__.main.__name__}"}


def test_the_newest_changelog_entry_is_this_version():
    entries = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert entries[0] == PROJECT["project"]["version"]


@pytest.mark.slow
def test_a_wheel_holds_every_file_of_the_harness(tmp_path):
    """Package data are easily forgotten, and in a checkout nobody notices."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "harness", source / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", source)
    expected = {path.relative_to(source).as_posix() for path in (source / "harness").rglob("*") if path.is_file()}
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, source]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    assert expected <= set(zipfile.ZipFile(wheel).namelist())


def test_make_alone_lists_every_command(tmp_path):
    told = make(tmp_path).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"^  make (\w+)", told, re.MULTILINE)) == set(phony[1].split())


def test_without_a_python_of_its_age_make_says_what_to_install(tmp_path, bare_path):
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    fake_python(bare_path, "python3", "version_info")
    told = make(tmp_path, "test", path=str(bare_path))
    assert told.returncode == 2
    assert "caliber needs Python 3.11 or newer; 'python3' is Python 3.9.2" in told.stderr
    assert "make PYTHON=" in told.stderr


def test_a_python_that_cannot_make_environments_is_named_with_the_package_it_lacks(tmp_path, bare_path):
    """Debian's python3 without python3-venv. It is found by its full name, where `python3` is an old one."""
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    fake_python(bare_path, "python3", "version_info")
    fake_python(bare_path, "python3.12", "ensurepip")
    told = make(tmp_path, "test", path=str(bare_path))
    assert told.returncode == 2
    assert "python3.12 cannot make a virtual environment; install its venv package" in told.stderr


@pytest.mark.parametrize(("ran", "judged", "wanted"), [(0, 0, 0), (1, 0, 1), (1, 5, 1), (0, 4, 4)])
def test_a_campaign_is_summed_up_however_it_ended_and_fails_when_either_did(tmp_path, ran, judged, wanted):
    """make itself answers 2 for every failure; the code it was given is in its last line."""
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    for name, code in (("snakemake", ran), ("caliber", judged)):
        (binaries / name).write_text(f'#!/bin/sh\necho "{name} $*"\nexit {code}\n')
        (binaries / name).chmod(0o755)
    for name in ("requirements.lock", "pyproject.toml", ".venv/.stamp"):
        (tmp_path / name).touch()
    told = make(tmp_path, "campaign", "CONFIG=config/h200.yaml", "CORES=4")
    first, second = told.stdout.splitlines()[:2]
    assert first == "snakemake --cores 4 --configfile config/h200.yaml"
    assert second == "caliber summary --config config/h200.yaml"
    assert (f"Error {wanted}" in told.stderr) if wanted else (told.returncode == 0)


def test_cleaning_keeps_results(tmp_path):
    for name in ("results/smoke/seal.json", ".snakemake/log/x", ".venv/bin/python", ".mypy_cache/x"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    for folder in ("harness/__pycache__", "tests", "workflow"):
        (tmp_path / folder).mkdir(parents=True)
    assert make(tmp_path, "clean").returncode == 0
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"Makefile", "results/smoke/seal.json", ".snakemake/log/x"}


def test_every_text_file_has_unix_line_ends():
    """Git's autocrlf once rewrote the drivers, broke them and changed every recorded digest."""
    assert re.search(r"^\* text=auto eol=lf$", (ROOT / ".gitattributes").read_text(encoding="utf-8"), re.MULTILINE)
    sources = [path for folder in ("harness", "workflow", "tests") for path in (ROOT / folder).rglob("*.py")]
    assert not [path for path in sources if b"\r\n" in path.read_bytes()]
