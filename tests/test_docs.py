"""The documents say what the code does: every key, marker, exit code and axis."""

import ast
import json
import re

import pytest

from harness import caliber
from harness.__main__ import COMMANDS
from harness.config import schema
from harness.records import ExitCode, Marker, Role, identity_fields


def config_rows(properties=None, prefix="", required=()):
    """(key, default, description) of every configuration key."""
    for key, rule in (properties or schema()["properties"]).items():
        rule = {**schema()["$defs"]["side"], **rule} if "$ref" in rule else rule
        default = rule.get("default")
        shown = "required" if key in required else "" if default in (None, {}) else f"`{json.dumps(default)}`"
        yield f"{prefix}{key}", shown, rule["description"]
        yield from (
            config_rows(rule["properties"], f"{prefix}{key}.", rule.get("required", ()))
            if rule.get("properties")
            else ()
        )


@pytest.mark.parametrize(("key", "default", "text"), list(config_rows(required=schema()["required"])))
def test_config_readme_has_every_key_with_its_default_and_description(repo_root, key, default, text):
    assert f"| `{key}` | {default} | {text} |" in (repo_root / "config/README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("marker", list(Marker))
def test_every_marker_is_in_the_readme(repo_root, marker):
    assert f"`{marker.value}`" in (repo_root / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", list(ExitCode))
def test_every_exit_code_is_in_the_readme(repo_root, code):
    assert f"| {code.value} |" in (repo_root / "README.md").read_text(encoding="utf-8")


def test_the_caliber_table_of_the_readme_is_the_one_the_code_gives(repo_root):
    assert f"\n{caliber.document()}\n" in (repo_root / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("axis", identity_fields(Role.COMPARED) + identity_fields(Role.AXIS))
def test_every_axis_is_in_the_caliber_table(axis):
    assert f"| `{axis}` |" in caliber.document()


def events_in_the_code(repo_root):
    """First arguments of emit_event, and codes in constants that end up there."""
    for path in sorted((repo_root / "harness" / "plugins").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "emit_event" and node.args:
                for constant in ast.walk(node.args[0]):
                    if isinstance(constant, ast.Constant) and (constant is node.args[0] or "_" in str(constant.value)):
                        yield constant.value


def test_every_event_is_documented(repo_root):
    text = (repo_root / "docs" / "events.md").read_text(encoding="utf-8")
    found = set(events_in_the_code(repo_root))
    assert len(found) > 15
    assert [code for code in sorted(found) if f"`{code}`" not in text] == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_in_the_readme(repo_root, command):
    commands = (repo_root / "README.md").read_text(encoding="utf-8").split("## Commands")[1].split("\n## ")[0]
    assert re.search(rf"[`, ]{command}[`, ]", commands)
