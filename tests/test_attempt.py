"""attempt: where a cell works and what its target is told."""

from pathlib import Path

from harness import attempt
from tests import grounds


def environment(tmp_path: Path, monkeypatch, **variables: str) -> dict[str, str]:
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ground = grounds.make(tmp_path)
    return attempt.environment(attempt.unclaimed(ground.cell, tmp_path / "results" / "demo", ground.root), "0")


def test_where_bytecode_is_forbidden_a_campaign_keeps_its_own(tmp_path, monkeypatch):
    env = environment(tmp_path, monkeypatch, PYTHONDONTWRITEBYTECODE="1")
    assert "PYTHONDONTWRITEBYTECODE" not in env
    assert env["PYTHONPYCACHEPREFIX"] == str(tmp_path / "results" / "demo" / "bytecode")


def test_a_place_for_bytecode_that_the_user_chose_stays(tmp_path, monkeypatch):
    env = environment(tmp_path, monkeypatch, PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX="/user/pyc")
    assert env["PYTHONPYCACHEPREFIX"] == "/user/pyc"


def test_elsewhere_bytecode_is_left_to_python(tmp_path, monkeypatch):
    assert "PYTHONPYCACHEPREFIX" not in environment(tmp_path, monkeypatch)
