"""Whole campaigns on musa, rocm and ascend: real Snakemake, runner, target interpreter, pytest, plugins and benchmarks.

What the vendor brings is stood in for: its tool on PATH answers with recorded texts, its torch module and Triton driver
(tests/fixtures/vendors) launch nothing and have a clock of their own. Kernels are really compiled: for hip:gfx942 on
rocm, for cuda:90 on musa and ascend, whose compilers are not upstream's. Side B has the code of DISABLE_LLVM_OPT.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import codec, manifest, store
from harness.findings import OpVerdict
from harness.records import Event, Identity, Row, Status
from tests.backends import fakes
from tests.workflow.project import REPO

pytestmark = [pytest.mark.campaign, pytest.mark.slow]
VENDORS = REPO / "tests/fixtures/vendors"
COMMON = ("identity", "lease", "autotune", "variants", "timing")


@dataclass
class Campaign:
    """One operator in float16, of caliber's own provider or of a FlagGems with two operators; `code` once it has run.

    `env` is set on both sides, `parent` around the whole campaign; `packages` are what each side's PYTHONPATH names.
    """

    root: Path
    backend: str
    devices: Sequence[Any]
    node: str = "benchmark/test_add.py::test_add"
    provider: str = "builtin"
    rounds: int = 1
    env: dict[str, str] = field(default_factory=dict)
    parent: dict[str, str] = field(default_factory=dict)
    packages: Sequence[str] = ("common",)
    code: int = -1
    output: str = ""

    def run(self) -> Campaign:
        self._configure()
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
        path = f"{fakes.BIN}{os.pathsep}{env['PATH']}"
        env |= {"CALIBER_LEASE_DIR": str(self.root / "leases"), "PYTHONPATH": str(REPO), "PATH": path, **self.parent}
        command = [sys.executable, "-m", "snakemake", "-s", str(REPO / "workflow/Snakefile"), "--cores", "2"]
        ended = subprocess.run(
            command, cwd=self.root, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        self.code, self.output = ended.returncode, ended.stdout
        return self

    def _configure(self) -> None:
        shutil.copytree(VENDORS / "gems", self.root / "gems")
        workload = {"op": "add", "node": self.node, "dtypes": ["float16"], "reason": "short"}
        sealed = {"manifest": "m", "provider": self.provider, "workloads": [workload]}
        (self.root / "m.yaml").write_text(yaml.safe_dump(sealed))
        manifest.seal(self.root / "m.yaml")
        pythonpath = [str(VENDORS / name) for name in (self.backend, *self.packages)] if self.packages else []
        sides = {
            name: {"pythonpath": pythonpath, "env": {"DISABLE_LLVM_OPT": value, **self.env}}
            for name, value in (("A", None), ("B", "1"))
        }
        settings = {
            "campaign": "t", "manifest": "m.yaml", "backend": self.backend, "devices": list(self.devices),
            "provider": {"name": self.provider, **({"root": "gems"} if self.provider == "flaggems" else {})},
            "sides": sides, "measure": {"rounds": self.rounds, "warmup_ms": 1, "rep_ms": 2},
        }  # fmt: skip
        (self.root / "config").mkdir()
        (self.root / "config" / "config.yaml").write_text(yaml.safe_dump(settings))

    @property
    def op(self) -> Path:
        return self.root / "results" / "t" / "add"

    def status(self, cell: str) -> Status:
        found = store.status(self.op / cell)
        assert found is not None, self.output
        return found

    def outcomes(self) -> dict[str, str]:
        return {
            path.parent.name: self.status(path.parent.name).outcome.value for path in self.op.glob("r*/status.json")
        }

    def rows(self, cell: str) -> tuple[Row, ...]:
        return store.rows(self.op / cell / "attempts/1")

    def events(self, cell: str) -> tuple[Event, ...]:
        return store.events(self.op / cell / "attempts/1")

    def identity(self, cell: str) -> Identity:
        return codec.read(Identity, self.op / cell / "attempts/1/run_identity.json")

    def telemetry(self, cell: str) -> set[tuple[str, ...]]:
        """Every different sample of a cell, without its time."""
        with open(self.op / cell / "attempts/1/telemetry.csv", encoding="utf-8") as file:
            return {tuple(line[1:]) for line in list(csv.reader(file))[1:]}

    @property
    def verdict(self) -> OpVerdict:
        return codec.read(OpVerdict, self.op / "verdict.json")


def plugins(*own: str) -> tuple[str, ...]:
    return tuple(f"harness.plugins.{name}" for name in (*own, *COMMON))


def assert_compared(campaign: Campaign, rows: int) -> None:
    """Every cell ended well, and every row of the slower code was found slower in every round."""
    assert campaign.code == 0, campaign.output
    measured = {f"r{number}_{side}" for number in range(1, campaign.rounds + 1) for side in "AB"}
    assert campaign.outcomes() == {"r0_A": "recorded", **dict.fromkeys(measured, "measured")}
    assert {len(campaign.rows(cell)) for cell in measured} == {rows}
    verdict = campaign.verdict
    assert verdict.verdict.value == "UNRESOLVED"  # so few rounds decide nothing
    assert len(verdict.shapes) == rows and all(found.delta > 0.01 for found in verdict.rounds)
    # what the device never launched was compiled ahead without one: the stand-in driver answered for it
    assert campaign.output.count("compiled 1 of 1 variants") == 2
    report = (campaign.op.parent / "report.md").read_text(encoding="utf-8")
    assert f"backend {campaign.backend}, timer " in report


def test_musa_captures_into_a_musagraph_on_a_device_whose_index_is_sparse(tmp_path):
    fence = {"MUSA_VISIBLE_DEVICES": "0,3"}
    campaign = Campaign(tmp_path, "musa", devices=(3, 0), rounds=2, parent=fence).run()
    assert_compared(campaign, rows=5)
    found = campaign.identity("r2_B")
    assert (found.backend, found.device_model, found.runtime) == ("musa", "MTT S5000", "musa 4.3.0")
    assert found.driver == "3.3.5-server"
    assert found.plugins == plugins("device", "compat_musa")
    assert found.env["MUSA_VISIBLE_DEVICES"] == "3", "the lane's own device, of those that the fence leaves"
    rows = campaign.rows("r2_B")
    assert {(row.timer, row.l2, row.repeat, row.reason) for row in rows} == {("cuda_graph", "warm", 1, "")}
    assert all(row.variants and row.metrics["registers"] > 0 for row in rows)
    assert sum(campaign.status("r2_B").markers.values()) == 0
    # of this device mthreads-gmi says neither UUID, nor clocks, nor temperature: absent is empty
    assert campaign.status("r2_B").device == "pci-00000000:3a:00.0"
    assert campaign.telemetry("r2_B") == {("3", "pci-00000000:3a:00.0", "", "", "", "477.68", "98", "")}
    gate = store.gate(campaign.op.parent, "add")
    assert gate is not None and gate.verdict == "CODE_CHANGED"


def test_a_musa_capture_that_is_refused_falls_back_row_by_row_and_says_so(tmp_path):
    """On FlagGems' own guarded operator, which the compat plugin lets run."""
    campaign = Campaign(
        tmp_path, "musa", devices=(0,), provider="flaggems", node="benchmark/test_fft.py::test_perf_fft",
        env={"FAKE_CAPTURE": "fails"},
    ).run()  # fmt: skip
    assert_compared(campaign, rows=2)
    assert {(row.timer, row.l2) for row in campaign.rows("r1_B")} == {("direct", "flushed")}
    assert campaign.identity("r1_B").timer == "cuda_graph"  # planned; the rows say what was used
    assert campaign.status("r1_B").markers["BENCHMARK_DIRECT_NO_CUDAGRAPH"] == 2
    told = [event.detail for event in campaign.events("r1_B") if event.code == "BENCHMARK_DIRECT_NO_CUDAGRAPH"]
    reason = "RuntimeError: MUSA error: operation not permitted when stream is capturing"
    assert told == [{"repeat": "1", "reason": reason}] * 2
    lifted = "COMPAT_MUSA lifted 'CUDA is not available' from benchmark/test_fft.py::test_perf_fft\n"
    assert lifted in (campaign.op / "r1_B/attempts/1/run.log").read_text(encoding="utf-8")


def test_a_musa_capture_that_poisons_the_process_is_the_operators_verdict(tmp_path):
    campaign = Campaign(tmp_path, "musa", devices=(0,), env={"FAKE_CAPTURE": "poisons"}).run()
    assert campaign.outcomes() == {"r0_A": "op_failed", "r1_A": "skipped", "r1_B": "skipped"}
    assert campaign.status("r0_A").markers["BENCHMARK_CAPTURE_POISONED"] == 1
    assert campaign.rows("r0_A") == (), "nothing is timed in a process that is lost"
    (poisoned,) = [event for event in campaign.events("r0_A") if event.code == "BENCHMARK_CAPTURE_POISONED"]
    assert poisoned.detail["reason"] == "CapturePoisoned: RuntimeError: MUSA error: unknown error"
    assert campaign.verdict.verdict.value == "POISONED"


def test_rocm_captures_through_torch_cuda_and_compiles_for_gfx942(tmp_path):
    campaign = Campaign(tmp_path, "rocm", devices=(1,)).run()
    assert_compared(campaign, rows=5)
    found = campaign.identity("r1_B")
    assert (found.target, found.device_model) == ("hip:gfx942", "AMD Instinct MI300X")
    assert found.runtime == "hip 6.4.43482" and found.driver
    assert found.plugins == plugins("device") and found.env["HIP_VISIBLE_DEVICES"] == "1"
    rows = campaign.rows("r1_B")
    assert {(row.timer, row.l2) for row in rows} == {("cuda_graph", "warm")}
    assert all(row.metrics["sgprs"] > 0 for row in rows), "AMD's own metrics, of the binary that was launched"
    assert campaign.telemetry("r1_B") == {("1", "GPU-5b0c77de91a2f384", "2045", "1600", "31", "411", "99", "")}


def test_ascend_is_timed_directly_by_do_bench_npu_whose_cache_is_warm(tmp_path):
    campaign = Campaign(tmp_path, "ascend", devices=(5,), provider="flaggems").run()
    assert_compared(campaign, rows=2)
    found = campaign.identity("r1_B")
    assert (found.backend, found.device_model, found.timer) == ("ascend", "Ascend910B3", "direct")
    assert (found.driver, found.runtime) == ("25.5.2", "cann 8.2.RC1")
    assert found.plugins == plugins("device")
    assert {name: found.env[name] for name in ("ASCEND_RT_VISIBLE_DEVICES", "NPU_VISIBLE_DEVICES")} == {
        "ASCEND_RT_VISIBLE_DEVICES": "5", "NPU_VISIBLE_DEVICES": "5"
    }  # fmt: skip
    assert {(row.timer, row.l2, row.reason) for row in campaign.rows("r1_B")} == {("direct", "warm", "")}
    assert campaign.telemetry("r1_B") == {("5", "pci-0000:C1:00.0-chip-0", "", "", "58", "301.7", "97", "")}


def test_a_side_without_the_vendors_package_is_refused_before_any_cell(tmp_path):
    campaign = Campaign(tmp_path, "musa", devices=(0,), packages=()).run()
    assert campaign.code != 0 and not campaign.op.joinpath("r0_A/attempts").exists()
    assert (
        f"PREFLIGHT_FAILED check=device: torch.musa of {sys.executable} does not exist: ModuleNotFoundError: No module "
        "named 'torch_musa'; install it there, or set sides.A.python or pythonpath"
    ) in campaign.output
