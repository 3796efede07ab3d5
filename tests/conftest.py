"""What every test may ask for: the checkout, golden files, and a real device when `--gpu` says so."""

import difflib
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"


def pytest_addoption(parser):
    parser.addoption("--gpu", action="store_true", help="also run the tests that need a real device (marker gpu)")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--gpu"):
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="needs a real device: run with --gpu"))


@pytest.fixture
def repo_root():
    """The root of the checkout."""
    return ROOT


@pytest.fixture
def golden(tmp_path):
    """`golden(name, text)`: text equals tests/golden/<name>. CALIBER_UPDATE_GOLDEN=1 writes it."""

    def check(name, text):
        path = GOLDEN / name
        if os.environ.get("CALIBER_UPDATE_GOLDEN") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        wanted = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != wanted:
            got = tmp_path / f"{path.name}.got"
            got.write_text(text, encoding="utf-8", newline="\n")
            diff = difflib.unified_diff(wanted.splitlines(), text.splitlines(), f"golden/{name}", "got", lineterm="")
            pytest.fail(
                f"{path} differs from {got}; if the new text is right: CALIBER_UPDATE_GOLDEN=1\n" + "\n".join(diff),
                pytrace=False,
            )

    return check
