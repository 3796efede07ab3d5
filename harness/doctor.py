"""What this machine can run, and for each thing that is missing the way out. Read-only; never fails.

It looks at the interpreter it runs in; a campaign's own interpreters are looked at by preflight.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import backends, samplers
from harness.backends import Backend, DeviceError, RunTool, ToolError, run_tool
from harness.preflight import MODULES, PROBE, PROBE_TIMEOUT_S
from harness.samplers import SamplerMissing

#: Where Triton's wheel carries NVIDIA's assembler and disassembler, below the package.
BUNDLED = Path("backends/nvidia/bin")
Answer = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """One line: what, whether it is there, and what was seen or how to get it."""

    topic: str
    found: bool
    text: str


def doctor(run: RunTool = run_tool, answer: Answer | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """The whole examination as text, one line per finding. `answer` is the probe's, by default of this interpreter."""
    answer = answer or probe()
    found = [*interpreter(answer), snakemake(), aot(answer), disassembler(answer)]
    for backend in backends.ALL:
        if backend.tool:
            found += vendor(backend, run, environ)
    width = max(len(finding.topic) for finding in found)
    return "".join(f"{'ok' if f.found else '--'}  {f.topic:<{width}}  {f.text}\n" for f in found)


def probe() -> Answer:
    """What the interpreter that runs this has; every module is really imported (seconds)."""
    command = [sys.executable, str(PROBE), "--modules", ",".join(MODULES), "--import"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def interpreter(answer: Answer) -> Iterator[Finding]:
    """This Python and what a target needs of it."""
    yield Finding("python", True, f"{answer['python']} ({answer['executable']})")
    for name, module in answer["modules"].items():
        if not module["found"]:
            yield Finding(name, False, f"not installed; pip install {name}, or set sides.*.python to one that has it")
        elif module["error"]:
            yield Finding(name, False, f"{module['path']} cannot be imported: {module['error']}; reinstall it")
        else:
            yield Finding(name, True, f"{module['version'] or 'unknown version'} ({module['path']})")


def snakemake() -> Finding:
    """The orchestrator, in this interpreter."""
    try:
        return Finding("snakemake", True, importlib.metadata.version("snakemake"))
    except importlib.metadata.PackageNotFoundError:
        return Finding("snakemake", False, "not installed; pip install snakemake, or create environment.yml")


def aot(answer: Answer) -> Finding:
    """Whether kernels can be compiled here with no device."""
    triton = answer["modules"].get("triton", {"found": False})
    if not triton["found"] or triton["error"]:
        return Finding("backend aot", False, "needs triton in this interpreter; pip install triton")
    ptxas = _bundled(answer, "ptxas")
    if ptxas is None:
        return Finding("backend aot", True, "hip:gfx<...> only: this triton carries no ptxas; set TRITON_PTXAS_PATH")
    return Finding("backend aot", True, f"cuda:<arch> by {ptxas}, hip:gfx<...> by triton's own LLVM")


def disassembler(answer: Answer) -> Finding:
    """For people who want to read the machine code behind a CODE_CHANGED; no verdict needs it."""
    found = _bundled(answer, "nvdisasm") or shutil.which("nvdisasm")
    if found:
        return Finding("disassembler", True, str(found))
    return Finding("disassembler", False, "no nvdisasm; put the CUDA toolkit's bin on PATH to read machine code")


def vendor(backend: Backend, run: RunTool, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The vendor's devices as this process may use them, and their sampler."""
    topic = f"backend {backend.name}"
    try:
        devices = backend.devices(run=run, environ=environ)
    except DeviceError as error:
        yield Finding(topic, False, str(error))
        return
    fence = "".join(f", {name}={environ[name]}" for name in backend.visible_env if name in environ)
    if not devices:
        yield Finding(topic, False, f"{backend.tool} lists no device for this process{fence}; {backend.remedy}")
        return
    for device in devices:
        yield Finding(topic, True, f"{device}{fence}")
    try:
        sampler = samplers.open_sampler(backend.sampler, devices, run)
        sampler.read()
        yield Finding("telemetry", True, "; ".join((f"{backend.name} by {sampler.source}", *sampler.notes)))
    except (SamplerMissing, ToolError) as error:
        yield Finding("telemetry", False, f"{backend.name}: {error}; cells run without it")


def _bundled(answer: Answer, name: str) -> Path | None:
    """A program in the wheel of the probed triton, or None."""
    triton = answer["modules"].get("triton", {"found": False})
    path = Path(triton["path"]).parent / BUNDLED / name if triton["found"] else Path(os.devnull)
    return path if path.is_file() else None
