"""Reason codes: docs/verdicts.md has each one that the code can give, and none that it cannot."""

import ast
import re

from harness.findings import Verdict


def literals(root):
    """Every whole string in the sources of the harness that looks like a code."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (root / "harness").rglob("*.py")]
    constants = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {value for value in constants if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Z_]+", value)}


def given(root):
    """Codes that are written where a Reason is made."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (root / "harness").rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    reasons = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Reason" and call.args]
    return {call.args[0].value for call in reasons if isinstance(call.args[0], ast.Constant)}


def documented(root):
    lines = (root / "docs/verdicts.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split("|")[1] for line in lines if line.startswith("| `")]
    return {code for cell in cells for code in re.findall(r"`([A-Z_]+)`", cell)}


def test_every_reason_that_can_be_given_is_documented(repo_root):
    assert len(given(repo_root)) > 30
    assert not given(repo_root) - documented(repo_root)


def test_no_reason_is_documented_that_the_code_does_not_know(repo_root):
    assert not documented(repo_root) - literals(repo_root)


def test_a_reason_names_only_verdicts_that_exist(repo_root):
    text = (repo_root / "docs/verdicts.md").read_text(encoding="utf-8")
    columns = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    named = {word for row in columns if len(row) > 4 for word in re.findall(r"\b[A-Z_]{4,}\b", row[2])}
    assert named <= {verdict.value for verdict in Verdict}
