"""What a target process can see of itself: its device, driver, compiler build and harness. Facts, no judgement."""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

#: Variables that change what is compiled, tuned or timed.
ENV_PREFIXES = (
    "TRITON_", "FLAGTREE_", "FLAGGEMS_", "GEMS_", "USE_", "MLIR_", "LLVM_", "PTXAS_", "NVPTX_", "DISABLE_", "AMDGCN_",
    "MUSA_", "MTCC_", "HIP_", "HSA_", "ASCEND_", "PYTORCH_", "CUBLAS_", "NVIDIA_TF32_",
)  # fmt: skip
ENV_SUFFIX = "_VISIBLE_DEVICES"
ENV_NAMES = ("CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "OMP_NUM_THREADS")
#: Different in every cell by construction, or telling where and not what.
ENV_NOT_COMPARED = ("TRITON_CACHE_DIR", "TRITON_HOME", "FLAGGEMS_CACHE_DIR", "FLAGGEMS_DB_URL", "FLAGGEMS_SOURCE_DIR")
#: Where a driver says its version nowhere but through the vendor's tool: the command, and the place in its answer.
DRIVER_TOOLS = {
    "hip": (("rocm-smi", "--showdriverversion", "--json"), r'"Driver version"\s*:\s*"([^"]+)"'),
    "musa": (("mthreads-gmi", "-q", "--json"), r'"\s*Driver Version\s*"\s*:\s*"([^"]+)"'),
    "npu": (("npu-smi", "info"), r"\bVersion:\s*(\S+)"),
}
TOOL_TIMEOUT_S = 20.0
READ_BYTES = 1 << 22
_LOADED = time.monotonic()


def relevant_env(left_out: Iterable[str]) -> dict[str, str]:
    """The variables that two comparable processes must share, less those named in `left_out`."""
    dropped = {*ENV_NOT_COMPARED, *left_out}
    return {name: os.environ[name] for name in sorted(os.environ) if _is_relevant(name) and name not in dropped}


def _is_relevant(name: str) -> bool:
    return name in ENV_NAMES or name.startswith(ENV_PREFIXES) or name.endswith(ENV_SUFFIX)


def device(runtime: str) -> tuple[str, str]:
    """(model, uuid) of the current device of torch.<runtime>; ("", "") for "meta", which has none."""
    if runtime == "meta":
        return "", ""
    interface = getattr(importlib.import_module("torch"), runtime)
    properties = interface.get_device_properties(interface.current_device())
    uuid = str(getattr(properties, "uuid", ""))
    bare = runtime == "cuda" and not _torch_version("hip") and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4,12}){4}", uuid)
    return str(properties.name), f"GPU-{uuid}" if bare else uuid  # as the vendor's own tools write it


def driver_version(runtime: str) -> str:
    """The kernel driver's version as the vendor writes it ("580.159.04"), else CUDA's number; "" where unknown."""
    if runtime == "cuda" and not _torch_version("hip"):
        return _nvml_driver() or _cuda_driver()
    vendor = "hip" if runtime == "cuda" else runtime
    module = _first_line("/sys/module/amdgpu/version") if vendor == "hip" else ""
    return module or (_told_by(*DRIVER_TOOLS[vendor]) if vendor in DRIVER_TOOLS else "")


def runtime_version() -> str:
    """`cuda 13.0`, `hip 6.4`, `musa 4.3`: what this torch was built for; "" for a CPU build."""
    found = ((name, _torch_version(name)) for name in ("cuda", "hip", "musa", "cann"))
    return " ".join(f"{name} {version}" for name, version in found if version)


@cache
def triton_digest() -> str:
    """SHA-256 over the names and bytes of triton's *.py and of libtriton. Half a second: libtriton has 460 MB."""
    home = _triton_home()
    files = (path for pattern in ("**/*.py", "_C/libtriton*.so") for path in home.glob(pattern))
    return _digest((path.relative_to(home).as_posix(), path) for path in files)


def process_age() -> float:
    """Seconds since this process was started: its interpreter's own start included."""
    known = time.monotonic() - _LOADED
    try:
        # proc(5): field 22 is the start in clock ticks after boot; the name in field 2 may hold blanks
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        return max(known, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, AttributeError, ValueError):  # no Linux
        return known


def triton_build() -> str:
    """`<version> <12 digits of the library's SHA-256>`."""
    libraries = sorted(_triton_home().glob("_C/libtriton*.so"))
    digest = _file_sha256(libraries[0])[:12] if libraries else "without-library"
    return f"{importlib.import_module('triton').__version__} {digest}"


def compiler_commit() -> str:
    """HEAD of the git checkout that triton is imported from; "" for an installed package. No git is run."""
    for parent in _triton_home().parents:
        if parent.name == "site-packages":
            return ""
        head = _first_line(str(parent / ".git" / "HEAD"))
        if head:
            reference = head.removeprefix("ref: ")
            return head if reference == head else _first_line(str(parent / ".git" / reference))
    return ""


def loaded_digest(package: str) -> str:
    """SHA-256 over names and sources of the modules of `package` that this process has loaded."""
    loaded = {name: module for name, module in sys.modules.items() if f"{name}.".startswith(f"{package}.")}
    return _digest((name, Path(str(module.__file__))) for name, module in loaded.items())


def _digest(files: Iterable[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files):
        digest.update(f"{name} {_file_sha256(path)}\n".encode())
    return digest.hexdigest()


def file_digest(path: str) -> str:
    """SHA-256 of one file."""
    return _file_sha256(Path(path))


@cache
def _file_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _triton_home() -> Path:
    return Path(str(importlib.import_module("triton").__file__)).parent


def _torch_version(name: str) -> str:
    return str(getattr(importlib.import_module("torch").version, name, None) or "")


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()[0].strip()
    except (OSError, IndexError):
        return ""


def _nvml_driver() -> str:
    library = _library("libnvidia-ml.so.1")
    if library is None or library.nvmlInit_v2() != 0:
        return ""
    text = ctypes.create_string_buffer(96)
    found = library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text))) == 0
    library.nvmlShutdown()
    return text.value.decode() if found else ""


def _cuda_driver() -> str:
    library, number = _library("libcuda.so.1"), ctypes.c_int()
    if library is None or library.cuDriverGetVersion(ctypes.byref(number)) != 0:
        return ""
    return f"cuda {number.value // 1000}.{number.value % 1000 // 10}"


def _told_by(command: Sequence[str], pattern: str) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    found = re.search(pattern, done.stdout)
    return found[1].strip() if found and found[1].strip() != "N/A" else ""


def _library(name: str) -> Any:
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None
