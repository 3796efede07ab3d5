"""A small campaign in a temporary directory: the real workflow, a fake target, a provider tree of empty benchmarks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness import manifest, store
from harness.records import Status

REPO = Path(__file__).resolve().parent.parent.parent
FAKE = Path(__file__).with_name("fake_target.py")


@dataclass
class Project:
    """`root` is the working directory; `ops` are measured by the fake target."""

    root: Path
    ops: Sequence[str] = ("add", "mm")
    rounds: int = 2
    devices: Sequence[Any] = (0,)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._provider()
        target = self.root / "target"
        target.write_text(f"#!{sys.executable}\n{FAKE.read_text(encoding='utf-8')}", encoding="utf-8")
        target.chmod(0o755)
        self.behave({})
        nodes = [{"op": op, "node": f"benchmark/test_{op}.py::test_{op}"} for op in self.ops]
        path = self.root / "manifest.yaml"
        path.write_text(yaml.safe_dump({"manifest": "m", "provider": "flaggems", "workloads": nodes}), encoding="utf-8")
        manifest.seal(path)
        self.configure()

    def configure(self, **changes: Any) -> None:
        """Write the configuration, with top-level keys replaced."""
        side = {"python": str(self.root / "target")}
        data = {
            "campaign": "t",
            "manifest": "manifest.yaml",
            "backend": "aot",
            "target": "cuda:90",
            "devices": list(self.devices),
            "provider": {"name": "flaggems", "root": "gems"},
            "sides": {"A": side, "B": {**side, "env": {"SWITCH": "1"}}},
            "measure": {"rounds": self.rounds, "cell_timeout_s": 60},
            **self.extra,
            **changes,
        }
        (self.root / "config").mkdir(exist_ok=True)
        (self.root / "config" / "config.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")

    def behave(self, words: Mapping[str, Sequence[str]]) -> None:
        """What cells do: `{"mm/r2_B": ["hang", "ok"]}`, one word per attempt."""
        (self.root / "fake.json").write_text(json.dumps(words), encoding="utf-8")

    @property
    def results(self) -> Path:
        return self.root / "results" / "t"

    @property
    def env(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
        return {**inherited, "FAKE_PLAN": str(self.root / "fake.json"), "CALIBER_LEASE_DIR": str(self.root / "leases"),
                "PYTHONPATH": str(REPO), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip

    def command(self, *arguments: str, cores: int = 3) -> list[str]:
        """A plain snakemake run; the profile beside the Snakefile is found by Snakemake itself."""
        snakefile = str(REPO / "workflow" / "Snakefile")
        return [sys.executable, "-m", "snakemake", "-s", snakefile, "--cores", str(cores), *arguments]

    def run(self, *arguments: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(*arguments), cwd=self.root, env=self.env, text=True, timeout=timeout_s,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start it in a process group of its own, for tests that end it."""
        with open(self.root / "snakemake.log", "w", encoding="utf-8") as log:
            return subprocess.Popen(
                self.command(*arguments), cwd=self.root, env=self.env, text=True, start_new_session=True,
                # A suite started in the background by a plain shell ignores Ctrl-C, and so would all that it starts.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def status(self, key: str) -> Status | None:
        return store.status(self.results / key)

    def outcomes(self) -> dict[str, str]:
        """Cell key -> outcome of every cell that has ended terminally."""
        return {
            str(path.parent.relative_to(self.results)): store.status(path.parent).outcome.value  # type: ignore[union-attr]
            for path in sorted(self.results.glob("*/r*_?/status.json"))
        }

    def measured(self) -> list[str]:
        """Every start of a target process, in order: `<key> <word>`."""
        log = Path(str(self.root / "fake.json") + ".log")
        return log.read_text(encoding="utf-8").splitlines() if log.exists() else []

    def forget(self) -> None:
        """Empty the list of starts."""
        Path(str(self.root / "fake.json") + ".log").unlink(missing_ok=True)

    def _provider(self) -> None:
        benchmark = self.root / "gems" / "benchmark"
        benchmark.mkdir(parents=True)
        for name in ("__init__.py", "base.py", "consts.py", "conftest.py"):
            (benchmark / name).write_text("", encoding="utf-8")
        (benchmark / "core_shapes.yaml").write_text("Benchmark: {shapes: [[4]]}\n", encoding="utf-8")
        for op in self.ops:
            (benchmark / f"test_{op}.py").write_text(f"def test_{op}(): ...\n", encoding="utf-8")
        source = self.root / "gems" / "src" / "flag_gems"
        source.mkdir(parents=True)
        (source / "__init__.py").write_text("", encoding="utf-8")


def fresh(tmp_path: Path, **arguments: Any) -> Project:
    """A project in an empty directory."""
    shutil.rmtree(tmp_path, ignore_errors=True)
    tmp_path.mkdir(parents=True)
    return Project(tmp_path, **arguments)
