"""pytest plugin: the torch device module of the cell's backend is there, and leads to one device: the lane's.

torch.musa and torch.npu exist once torch_musa and torch_npu are imported, and a benchmark need not do that. Counting
devices makes no context; the device is selected when it is leased and there is something to run on it.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from harness.plugins import session
from harness.plugins.probe import device_module


def pytest_load_initial_conftests() -> None:
    """Before any conftest: importing a provider may already ask for the device."""
    problem = obstacle(runtime())
    if problem:
        raise importlib.import_module("pytest").UsageError(problem)


def pytest_runtestloop(session: Any) -> None:
    """Select the device, for what was collected will run on it. lease.py, a later plugin, has asked for it by now."""
    if session.items:
        select(device_module(runtime()))


def select(module: Any) -> None:
    """Make the context. What was allocated before, on a device that was nobody's yet, is told."""
    allocated = module.memory_reserved(0) if hasattr(module, "memory_reserved") else 0
    if allocated:
        session.current().emit_event("USED_BEFORE_LEASE", "", bytes=str(allocated))
    module.set_device(0)


def runtime() -> str:
    """The name of the torch device module of this cell."""
    return os.environ.get("CALIBER_RUNTIME") or session.current().cell.instrument.runtime


def obstacle(runtime: str) -> str:
    """Why nothing can be measured on torch.<runtime>, with the way out; "" where it sees exactly one device."""
    cell = session.current().cell
    side = f"sides.{cell.side.name}"
    try:
        count = device_module(runtime).device_count()
    except ModuleNotFoundError as error:
        way_out = f"install it there, or set {side}.python or pythonpath"
        return f"{sys.executable} has no module {error.name}, which torch.{runtime} needs; {way_out}"
    except (ImportError, AttributeError, OSError) as error:
        return f"torch.{runtime} of {sys.executable} cannot be used: {session.first_line(error)}; mend that build"
    if count == 1:
        return ""
    names = cell.instrument.visible_env
    seen = " ".join(f"{name}={os.environ[name]}" for name in names if name in os.environ) or "nothing set"
    fits = "" if count else ", and have a torch build for this device and driver"
    way_out = f"a cell has one device: leave {', '.join(names)} out of {side}.env{fits}"
    return f"torch.{runtime} of {sys.executable} sees {count} devices ({seen}); {way_out}"
