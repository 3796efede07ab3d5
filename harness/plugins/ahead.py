"""Compile for one side what its cells need, without a device: `python -m harness.plugins.ahead`, no pytest plugin.

Runs in the side's own interpreter and environment, so that every key is the one a measured cell will look up. Only the
device is missing: a stand-in driver answers for it. It must not launch anything, and never fails a campaign: what it
cannot compile it names.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from harness import codec
from harness.compilations import Ahead, Specialization
from harness.plugins import aot, keys, session
from harness.plugins.probe import device_module


def main() -> int:
    """Compile what --specializations lists into TRITON_CACHE_DIR and write --result. 0 whatever could be compiled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specializations", type=Path, required=True)
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("--device-name", default="", help="what the device would call itself")
    given = parser.parse_args()
    wanted = list(codec.read_lines(Specialization, given.specializations))
    codec.write(given.result, compile_all(wanted, given.specializations.with_name("generated"), given.device_name))
    return 0


def compile_all(wanted: Sequence[Specialization], generated: Path, device_name: str) -> Ahead:
    """Compile each of `wanted` and its launcher; `generated` holds the modules that no import finds."""
    current, started = session.current(), time.monotonic()
    missing, heard, reason = dict[str, str](), list[bool](), ""
    if not current.own_cache:
        reason = f"TRITON_CACHE_DIR={os.environ.get('TRITON_CACHE_DIR', '')} is no cache of this side's own"
    elif wanted:
        keys.settle()
        launcher = launcher_of(stand_in(wanted[0].target, current.cell.instrument.runtime, device_name))
        importlib.import_module("triton.knobs").compilation.listener = lambda **told: heard.append(told["cache_hit"])
        for item in wanted:
            try:
                build_launcher(launcher, kernel_of(item, generated).preload(asked_here(item)))
            except Exception as error:  # why: an import or a compiler may raise anything, and the answer is which
                missing.setdefault(f"{item.module}.{item.kernel}", session.first_line(error))
    return Ahead(
        op=current.cell.op,
        side=current.cell.side.name,
        asked=len(wanted),
        compiled=heard.count(False),
        cached=heard.count(True),
        missing=missing,
        reason=reason,
        elapsed_s=time.monotonic() - started,
    )


def launcher_of(target: Any) -> Callable[[Any, Any], Any] | None:
    """The launcher of Triton's own driver for a GPUTarget; None where that needs the device, or a library of it."""
    backends = importlib.import_module("triton.backends").backends.values()
    with suppress(Exception):  # why: it compiles and loads C, and may raise anything; without it a cell takes longer
        driver = next(backend.driver for backend in backends if backend.compiler.supports_target(target))
        return cast("Callable[[Any, Any], Any]", driver().launcher_cls)
    return None


def build_launcher(launcher: Callable[[Any, Any], Any] | None, compiled: Any) -> None:
    """Have Triton build the C module that launches `compiled`: until 3.6 one for each signature, 0.3 s of a C compiler.

    Where that fails the cell that launches builds it, or says what it lacks.
    """
    if launcher is not None:
        with suppress(Exception):  # why: as above
            launcher(compiled.src, compiled.metadata)


def stand_in(target: Mapping[str, Any], runtime: str, device_name: str) -> Any:
    """Make the recorded target the active one, and let torch answer for its device what a provider's import asks.

    Returns it, a GPUTarget of Triton's.
    """
    wanted = importlib.import_module("triton.backends.compiler").GPUTarget(**target)
    name = f"{wanted.backend}:{wanted.arch}"
    figures = aot.device_figures(name) if name in aot.DEVICES else {**dict.fromkeys(aot.FIGURES, 0), "warpSize": 0}
    driver = aot.AotDriver(wanted, figures)
    importlib.import_module("triton.runtime.driver").driver.set_active(driver)
    major, minor = capability = driver.get_device_capability()
    count = figures["multiprocessor_count"]
    properties = SimpleNamespace(name=device_name, major=major, minor=minor, multi_processor_count=count)
    if runtime == "meta":
        return wanted
    module = device_module(runtime)
    answers = {"get_device_name": device_name, "get_device_capability": capability, "get_device_properties": properties}
    for question, answer in {**answers, "current_device": 0, "device_count": 1}.items():
        setattr(module, question, lambda *_, answer=answer, **__: answer)
    return wanted


def kernel_of(item: Specialization, generated: Path) -> Any:
    """The JIT function that `item` names, found in its module below whatever wraps it; LookupError if it is no more."""
    module = _generated(item, generated / item.file) if item.file else importlib.import_module(item.module)
    jit = importlib.import_module("triton.runtime.jit")
    found = getattr(jit, "_triton_jit_function_registry", {}).get(f"{item.module}:{item.kernel}")  # 3.7 on
    if found is None:
        found = module
        for part in item.kernel.split("."):
            found = getattr(found, part, None)
        found = _unwrapped(found)
    if found is None or found.fn.__qualname__ != item.kernel:
        raise LookupError(f"{item.module} has no JIT function {item.kernel} that can be reached from outside")
    return found


def asked_here(item: Specialization) -> str:
    """The recorded text, with the options that this side's environment sets."""
    knobs, data = importlib.import_module("triton.knobs"), json.loads(item.data)
    if knobs.runtime.debug:
        data["options"]["debug"] = True
    mode = getattr(knobs.compilation, "instrumentation_mode", "")
    if mode:
        data["options"]["instrumentation_mode"] = mode
    return json.dumps(data)


def _unwrapped(found: Any) -> Any:
    """The JIT function inside tuners, heuristics and a provider's own wrappers; None where there is none."""
    kind = importlib.import_module("triton.runtime.jit").JITFunction
    while found is not None and not isinstance(found, kind):
        inside = getattr(found, "__dict__", {})
        found = next((value for value in inside.values() if isinstance(value, kind)), inside.get("fn"))
    return found


def _generated(item: Specialization, path: Path) -> ModuleType:
    """A generator's module as it stood when it launched: its text, and over it the globals of the module it served.

    FlagGems' pointwise operators take their scalar function so, as the JIT function inside its wrapper.
    """
    if item.module in sys.modules:
        return sys.modules[item.module]
    spec = importlib.util.spec_from_file_location(item.module, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if item.overlaid:
        served, own = vars(importlib.import_module(item.overlaid)), _unwrapped(getattr(module, item.kernel, None))
        names = own.fn.__code__.co_names if own is not None else ()
        inner = {name: _unwrapped(served.get(name)) for name in names}
        called = {name: found for name, found in inner.items() if found is not None and found.fn.__name__ == name}
        vars(module).update({**served, item.kernel: vars(module)[item.kernel], **called})
    sys.modules[item.module] = module
    return module


if __name__ == "__main__":
    sys.exit(main())
