"""What a target interpreter has, asked of the interpreter itself. A script, not a pytest plugin; it imports no L0.

    <python> probe.py --modules torch,triton,pytest [--import] [--runtime cuda]

Prints one JSON line {python, executable, modules: {name: {found, path, version, error}}, device}. By default nothing
is imported (tens of milliseconds). `--import` imports each module and asks torch for its devices (seconds).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    """Answer on stdout. 0 whatever was found: a missing module is an answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", required=True)
    parser.add_argument("--import", dest="really", action="store_true")
    parser.add_argument("--runtime", default="")
    arguments = parser.parse_args()
    stand_where_pytest_stands()
    # What a module prints while it is imported must not be taken for the answer.
    answer = os.dup(1)
    os.dup2(2, 1)
    modules = {name: look(name, arguments.really) for name in arguments.modules.split(",") if name}
    device = torch_device(arguments.runtime) if arguments.really and modules.get("torch", {}).get("found") else None
    found = {"python": platform.python_version(), "executable": sys.executable, "modules": modules, "device": device}
    os.write(answer, (json.dumps(found) + "\n").encode())
    return 0


def stand_where_pytest_stands() -> None:
    """`python -m pytest` puts the working directory first; a script's own directory must not shadow modules."""
    if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
        sys.path[0] = os.getcwd()


def look(name: str, really: bool) -> dict[str, Any]:
    """One module: found, where, which version ("" = unknown), why importing it fails ("" = not tried, or fine)."""
    spec = importlib.util.find_spec(name)
    # A spec without origin is a bare directory of that name: a checkout in the working directory, not a module.
    if spec is None or spec.origin is None:
        return {"found": False, "path": "", "version": "", "error": ""}
    version, error = installed_version(name, spec.origin), ""
    if really:
        try:
            version = str(getattr(importlib.import_module(name), "__version__", version))
        except Exception as problem:  # why: a broken build may raise anything, and that is the answer asked for
            error = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
    return {"found": True, "path": spec.origin, "version": version, "error": error}


def installed_version(name: str, origin: str) -> str:
    """Version of the distribution that owns `origin`; a build on PYTHONPATH hides an installed one, and has none."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
    home = Path(str(distribution.locate_file(""))).resolve()
    return distribution.version if home in Path(origin).resolve().parents else ""


def torch_device(runtime: str) -> dict[str, Any] | None:
    """How many devices torch sees through its module `runtime`; None where none is needed ("" or "meta")."""
    if runtime in ("", "meta"):
        return None
    found: dict[str, Any] = {"runtime": runtime, "count": 0, "name": "", "error": ""}
    try:
        module = device_module(runtime)
        found["count"] = module.device_count() if module.is_available() else 0
        found["name"] = module.get_device_name(0) if found["count"] else ""
    except Exception as problem:  # why: the same for a driver that does not fit its torch
        found["error"] = " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
    return found


def device_module(runtime: str) -> Any:
    """torch.<runtime>; where torch lacks it, torch_<runtime> is imported, which brings it. Raises what that raises."""
    torch = importlib.import_module("torch")
    if not hasattr(torch, runtime):
        importlib.import_module(f"torch_{runtime}")
    return getattr(torch, runtime)


if __name__ == "__main__":
    sys.exit(main())
