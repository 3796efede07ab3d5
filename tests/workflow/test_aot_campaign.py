"""A whole campaign on backend aot: real Snakemake, real Triton, real kernels, no device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness import manifest, store
from tests.workflow.project import REPO

pytestmark = [pytest.mark.campaign, pytest.mark.slow]


def campaign(root: Path, ops: tuple[str, ...], switch: dict[str, str]) -> tuple[int, str]:
    """Run `ops` in float16 for two rounds with `switch` on side B; (return code, output)."""
    lines = [
        {"op": op, "node": f"benchmark/test_{op}.py::test_{op}", "dtypes": ["float16"], "reason": "short"} for op in ops
    ]
    (root / "m.yaml").write_text(yaml.safe_dump({"manifest": "m", "provider": "builtin", "workloads": lines}))
    manifest.seal(root / "m.yaml")
    (root / "config").mkdir()
    settings = {
        "campaign": "t", "manifest": "m.yaml", "backend": "aot", "target": "cuda:90", "devices": [0, 1],
        "sides": {"A": {}, "B": {"env": switch}}, "measure": {"rounds": 2},
    }  # fmt: skip
    (root / "config" / "config.yaml").write_text(yaml.safe_dump(settings))
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    env |= {"CALIBER_LEASE_DIR": str(root / "leases"), "PYTHONPATH": str(REPO)}
    command = [sys.executable, "-m", "snakemake", "-s", str(REPO / "workflow/Snakefile"), "--cores", "2"]
    ended = subprocess.run(
        command, cwd=root, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return ended.returncode, ended.stdout


def test_a_switch_that_changes_no_ttgir_and_yet_changes_code_is_not_skipped(tmp_path):
    code, output = campaign(tmp_path, ("layer_norm", "add"), {"TRITON_DEFAULT_FP_FUSION": "0"})
    assert code == 0, output
    results = tmp_path / "results" / "t"
    gates = {op: store.gate(results, op) for op in ("layer_norm", "add")}
    found = {op: (gate.verdict, gate.stage) for op, gate in gates.items() if gate}
    assert found == {"layer_norm": ("CODE_CHANGED", "ptx"), "add": ("IR_DIFF_SAME_CODE", "ptx")}
    assert {store.status(results / f"layer_norm/r2_{side}").outcome.value for side in "AB"} == {"measured"}
    assert {store.status(results / f"add/r2_{side}").outcome.value for side in "AB"} == {"skipped"}
    rows = store.rows(results / "add/r1_B/attempts/1")
    assert all(row.timer == "compile" and row.value and row.metrics["registers"] > 0 for row in rows)
    assert "compile latency" in (results / "report.md").read_text()
