"""What a provider is: one frozen value of corpus facts, and what follows from such facts for every provider.

Owns how a corpus is found, checked, digested and started. What is true of one corpus only is in its own module. It must
not know backends or cells; of a node it checks the file half only, for a missing test is already a clear pytest error.
"""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import records
from harness.records import ExitCode, Measure, Refusal, Workload

WAY_OUT = "set provider.root in config"


class ProviderError(Refusal):
    """A provider that is unknown, not where the config says, or not complete; one line with the way out."""

    code = ExitCode.ENVIRONMENT


@dataclass(frozen=True)
class Layout:
    """One generation of a corpus, recognised by `marks`: files that are all there.

    `benchmark_class` is the `module:class` whose get_latency is timed; every benchmark derives from it.
    """

    name: str
    benchmark_class: str
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Provider:
    """One corpus. All paths and glob patterns are relative to its root, with `/`.

    `home` is the root of a corpus that caliber carries itself, None where the config must name one. `cell_root` is
    where cells find it below the campaign directory, "" = at the root itself. `layouts` are tried in order.
    `python_parts` go on PYTHONPATH. `digested` are the patterns of the files that decide a latency. `variables` gives
    the environment of one cell from its scratch directory. `remedy` says what a complete root is.
    """

    name: str
    home: Path | None
    cell_root: str
    layouts: tuple[Layout, ...]
    shape_file: str
    python_parts: tuple[str, ...]
    digested: tuple[str, ...]
    variables: Callable[[Path, Measure], Mapping[str, str]]
    remedy: str

    def locate(self, config_root: str | None) -> Path:
        """The absolute root. ProviderError when `provider.root` is missing, superfluous or no directory."""
        if self.home is not None:
            if config_root:
                raise ProviderError(f"provider {self.name} has a root of its own; drop provider.root ({config_root})")
            return self.home
        if not config_root:
            raise ProviderError(f"provider {self.name} has no root; {WAY_OUT} to {self.remedy}")
        return _directory(Path(config_root).resolve(), f"{WAY_OUT} to {self.remedy}")

    def check(self, root: Path, workloads: Sequence[Workload]) -> None:
        """Refuse, at plan time, a root or a node that no cell could run. ProviderError names the path."""
        _directory(_directory(root, WAY_OUT) / "benchmark", f"{WAY_OUT} to {self.remedy}")
        layout = self.layout(root)
        for workload in workloads:
            file = root / _file(workload.node)
            if not file.is_file():
                known = [node for node in self.tests(root) if key(node) == key(workload.node)]
                hint = f"; it has {' and '.join(known)}" if known else ""
                raise ProviderError(
                    f"{file}: no such file, but op {workload.op} names it (layout {layout.name}{hint}); "
                    f"mend the manifest's node, or {WAY_OUT} to another checkout"
                )

    def layout(self, root: Path) -> Layout:
        """Which generation of the corpus is at `root`, decided by looking."""
        for layout in self.layouts:
            if all((root / mark).is_file() for mark in layout.marks):
                return layout
        wanted = ", nor ".join(" with ".join(layout.marks) for layout in self.layouts)
        raise ProviderError(f"{root} has no {wanted}; {WAY_OUT} to {self.remedy}")

    def pytest_args(self, root: Path, workload: Workload, measure: Measure) -> tuple[str, ...]:
        """What follows `python -m pytest` in a cell; paths relative to `root`, its working directory.

        Every option in one word: before the conftest that declares it is loaded, pytest takes a detached value for
        a path. Only the operator's latency is asked for: the reference would double the device time.
        """
        return (
            workload.node,
            f"--level={measure.level}",
            "--mode=kernel",
            f"--warmup={measure.warmup_ms}",
            f"--iter={measure.rep_ms}",
            "--metrics=latency",
            *(f"--dtypes={dtype}" for dtype in workload.dtypes),
            *([f"--shape_file={self.shape_file}"] if measure.shapes == "file" else []),
            "-s",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:logging",  # FlagGems 5.0 takes pytest's log handler for its own record file, and fails the test
        )

    def environment(self, scratch: Path, measure: Measure) -> dict[str, str]:
        """Variables of one cell; `scratch` is its own absolute directory. A side's switch is applied after them."""
        return dict(self.variables(scratch, measure))

    def python_path(self, root: Path) -> tuple[str, ...]:
        """Import paths the benchmarks need."""
        return tuple(str(root / part) for part in self.python_parts)

    def requirements(self, root: Path, workload: Workload, measure: Measure) -> tuple[tuple[str, Path], ...]:
        """(preflight check, path) of everything that must exist before the cell starts."""
        shapes = [("shape_file", root / self.shape_file)] if measure.shapes == "file" else []
        return ("provider_root", root), ("provider_file", root / _file(workload.node)), *shapes

    def tests(self, root: Path) -> tuple[str, ...]:
        """The node of every module-level test function below `benchmark/`, found without importing anything."""
        files = sorted((root / "benchmark").rglob("test_*.py"))
        return tuple(f"{path.relative_to(root).as_posix()}::{name}" for path in files for name in _functions(path))

    def digest(self, root: Path) -> str:
        """The commit of a clean git checkout, else `sha256:` over names and bytes of the digested files."""
        return _commit(root, self.digested) or _content(root, self.digested)

    def as_seen_by_cells(self, root: Path, digest: str) -> records.Provider:
        """The provider as it stands in a cell."""
        return records.Provider(self.name, self.cell_root or str(root), digest)


def key(node: str) -> str:
    """What a per-operator list calls a node: its function less `test_`, never its file (test_unique.py: `unique2`)."""
    return node.split("::")[1].split("[")[0].removeprefix("test_")


def _file(node: str) -> str:
    return node.split("::")[0]


def _directory(path: Path, way_out: str) -> Path:
    if not path.is_dir():
        raise ProviderError(f"{path}: no such directory; {way_out}")
    return path


def _functions(path: Path) -> list[str]:
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except SyntaxError as error:
        raise ProviderError(f"{path}:{error.lineno}: not Python: {error.msg}; {WAY_OUT} to a sound checkout") from None
    return [item.name for item in tree.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test")]


def _commit(root: Path, patterns: Sequence[str]) -> str | None:
    """HEAD, when nothing that the patterns match differs from it. Files that runs leave elsewhere do not count."""
    if not (root / ".git").exists():
        return None
    head = _git(root, "rev-parse", "HEAD")
    changed = _git(
        root, "status", "--porcelain", "--untracked-files=all", "--", *(f":(glob){item}" for item in patterns)
    )
    return head.strip() if head and changed == "" else None


def _git(root: Path, *arguments: str) -> str | None:
    """stdout, or None where git is missing or refuses. Never writes to the checkout."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _content(root: Path, patterns: Sequence[str]) -> str:
    total = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in root.glob(pattern) if path.is_file()}):
        total.update(f"{path.relative_to(root).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return f"sha256:{total.hexdigest()}"
