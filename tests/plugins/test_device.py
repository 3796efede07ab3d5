"""The device set-up plugin, in a pytest of its own beside a fake torch that writes down what it is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import backends, codec
from harness.records import Event
from tests.plugins.target import REPOSITORY, make_cell

ASKED = """
class Musa:
    def __getattr__(self, name):
        def asked(*arguments):
            print("ASKED", name, *arguments)
            return {bytes} if name == "memory_reserved" else {count}
        return asked
"""


def musa(count: int, bytes: int = 0) -> str:
    """torch.Musa, which has `count` devices and allocated `bytes` while it was imported."""
    return ASKED.format(count=count, bytes=bytes)


BRINGS = "import torch\nprint('IMPORTED torch_musa')\ntorch.musa = torch.Musa()\n"
TEST = "import torch\nprint('PROVIDER imports torch')\ndef test_one(): print('TEST runs')\n"


def module(directory: Path, name: str, text: str) -> None:
    (directory / f"{name}.py").write_text(text, encoding="utf-8")


def run(directory: Path, provider: str = TEST, **env: str) -> subprocess.CompletedProcess[str]:
    """pytest with the plugin alone, in a cell of backend musa whose device is 3."""
    module(directory, "test_provider", provider)
    cell = make_cell(backend="musa", target="", runtime="musa", visible_env=("MUSA_VISIBLE_DEVICES",))
    codec.write(directory / "cell.json", cell)
    own = {"CALIBER_CELL": str(directory / "cell.json"), "CALIBER_ATTEMPT": str(directory), "CALIBER_RUNTIME": "musa",
           "PYTHONPATH": f"{directory}{os.pathsep}{REPOSITORY}", "MUSA_VISIBLE_DEVICES": "3"}  # fmt: skip
    arguments = ["-p", "harness.plugins.device", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "-s", "-q", "test_provider.py"], cwd=directory,
        env={**os.environ, **own, **env}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of a usage error, behind which nothing was collected."""
    assert done.returncode == 4 and "PROVIDER" not in done.stdout, done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("ERROR: ")]
    return line.removeprefix("ERROR: ")


def test_the_vendors_package_is_imported_where_torch_lacks_the_module(tmp_path):
    module(tmp_path, "torch", musa(count=1))
    module(tmp_path, "torch_musa", BRINGS)
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = [line for line in done.stdout.splitlines() if line.split(" ")[0] in ("IMPORTED", "ASKED", "PROVIDER")]
    # Counting makes no context, selecting may: so it comes when something is there to run.
    assert asked == ["IMPORTED torch_musa", "ASKED device_count", "PROVIDER imports torch", "ASKED memory_reserved 0",
                    "ASKED set_device 0"]  # fmt: skip
    assert not (tmp_path / "events.jsonl").exists()


def test_what_an_import_allocated_on_a_device_that_was_not_leased_is_told(tmp_path):
    module(tmp_path, "torch", musa(count=1, bytes=512) + "musa = Musa()\n")
    assert run(tmp_path).returncode == 0
    (event,) = codec.read_lines(Event, tmp_path / "events.jsonl")
    assert (event.code, event.detail) == ("USED_BEFORE_LEASE", {"bytes": "512"})


def test_nothing_is_imported_where_torch_has_the_module_already(tmp_path):
    module(tmp_path, "torch", musa(count=1) + "musa = Musa()\n")
    module(tmp_path, "torch_musa", "raise SystemExit('imported')")
    assert run(tmp_path).returncode == 0


def test_without_a_test_no_device_is_selected(tmp_path):
    module(tmp_path, "torch", musa(count=1) + "musa = Musa()\n")
    done = run(tmp_path, provider="import torch\n")
    assert done.returncode == 5 and "ASKED device_count" in done.stdout and "ASKED set_device" not in done.stdout


def test_a_missing_package_is_named_with_the_interpreter_that_lacks_it(tmp_path):
    module(tmp_path, "torch", musa(count=1))
    assert refusal(run(tmp_path)) == (
        f"{sys.executable} has no module torch_musa, which torch.musa needs; install it there, or set sides.A.python "
        "or pythonpath"
    )


def test_a_package_that_does_not_load_is_told_in_its_own_words(tmp_path):
    module(tmp_path, "torch", musa(count=1))
    module(tmp_path, "torch_musa", "raise ImportError('libmusart.so.4: cannot open shared object file')")
    wanted = f"torch.musa of {sys.executable} cannot be used: ImportError: libmusart.so.4: cannot open shared object"
    assert refusal(run(tmp_path)).startswith(wanted)


@pytest.mark.parametrize(
    ("count", "visible", "told"),
    [(2, "0,3", ""), (0, "7", ", and have a torch build for this device and driver")],
)
def test_more_or_fewer_devices_than_the_lanes_one_are_refused(tmp_path, count, visible, told):
    module(tmp_path, "torch", musa(count=count))
    module(tmp_path, "torch_musa", BRINGS)
    assert refusal(run(tmp_path, MUSA_VISIBLE_DEVICES=visible)) == (
        f"torch.musa of {sys.executable} sees {count} devices (MUSA_VISIBLE_DEVICES={visible}); a cell has one device: "
        f"leave MUSA_VISIBLE_DEVICES out of sides.A.env{told}"
    )


def test_it_is_planned_first_wherever_there_is_a_device_and_not_for_aot():
    for backend in backends.ALL:
        planned = backends.instrument(backend, "auto", "cuda:90" if backend.name == "aot" else "").plugins
        if backend.name == "aot":
            assert "harness.plugins.device" not in planned
        else:
            assert planned[0] == "harness.plugins.device"
