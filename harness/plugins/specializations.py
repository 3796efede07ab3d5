"""What round 0 asked the compiler for, so that it can be asked again on another side, ahead of time and off the device.

Watches JITFunction._do_compile, for the compile hooks name no options: a listener hears only the metadata, which the
compiler has changed by then (num_warps of a warp-specialized kernel). Serialised is, at the end, all but the losers of
tuners: what rows launched, and what else a cell needs on its device (inputs, the flush of L2). Triton's own hook would
serialise every loser too, and fail its compile where JSON cannot say a constant.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import Any

from harness import codec
from harness.compilations import Specialization
from harness.plugins import session

#: hash of a variant -> (its JIT function, the arguments of its _do_compile by name), in the order they were compiled in
_asked: dict[str, tuple[Any, dict[str, Any]]] = {}
_candidates: set[str] = set()  # of those the ones that a tuner tried


def watch() -> None:
    """Remember every compilation of this process. A Triton that has no such method is told."""
    original = getattr(importlib.import_module("triton.runtime.jit").JITFunction, "_do_compile", None)
    if original is None:  # before 3.5
        session.current().emit_event("SPECIALIZATIONS_UNAVAILABLE", "", reason="JITFunction has no _do_compile")
        return
    importlib.import_module("triton.runtime.jit").JITFunction._do_compile = _watched(original)


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    @wraps(original)
    def do_compile(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = original(kernel, *args, **kwargs)
        bound = signature.bind(kernel, *args, **kwargs).arguments
        hash = str(getattr(compiled, "hash", ""))
        _asked[hash] = kernel, dict(bound)
        if kernel in session.current().tuned:
            _candidates.add(hash)
        return compiled

    return do_compile


def write(attempt: Path, launched: Collection[str]) -> None:
    """Write specializations.jsonl: the variants with those hashes, and the others less candidates of tuners.

    What rows launched and cannot be written down is told.
    """
    lines = []
    target = importlib.import_module("triton.runtime.driver").driver.active.get_current_target()
    for hash, (kernel, asked) in _asked.items():
        if hash in _candidates and hash not in launched:
            continue
        overlaid = str(kernel.fn.__globals__.get("__name__", ""))
        try:
            found = Specialization(
                module=str(kernel.fn.__module__),
                kernel=str(kernel.fn.__qualname__),
                target=dict(vars(target)),
                data=_serialised(kernel, asked, target),
                file=_kept(attempt / "generated", kernel.fn),
                overlaid=overlaid if overlaid != kernel.fn.__module__ else "",
            )
            lines.append(codec.dumps(found) + "\n")
        except (TypeError, ValueError, OSError, codec.CodecError) as error:
            if hash not in launched:
                continue
            name = f"{kernel.fn.__module__}.{kernel.fn.__qualname__}"
            session.current().emit_event("SPECIALIZATION_LOST", "", kernel=name, reason=session.first_line(error))
    codec.write_text(attempt / "specializations.jsonl", "".join(lines))


def _serialised(kernel: Any, asked: Mapping[str, Any], target: Any) -> str:
    """Triton's own text; a default option is left out, for another side may have another default."""
    jit = importlib.import_module("triton.runtime.jit")
    parts = [jit.get_full_name(kernel.fn), asked["signature"], asked["constexprs"], asked["attrs"], asked["options"]]
    takes = inspect.signature(jit.serialize_specialization_data).parameters
    data = json.loads(jit.serialize_specialization_data(*parts, asked["key"], *([target] if "target" in takes else [])))
    data.setdefault("target", dict(vars(target)))
    default, debugging = _defaults(), importlib.import_module("triton.knobs").runtime.debug
    of_switch = {"instrumentation_mode", *(["debug"] if debugging and not kernel.debug else [])}
    plain = {name: value for name, value in data["options"].items() if name not in of_switch}
    data["options"] = {name: value for name, value in plain.items() if default.get(name, ...) != value}
    return json.dumps(data)


@cache
def _defaults() -> dict[str, Any]:
    compiler, driver = importlib.import_module("triton.compiler.compiler"), importlib.import_module("triton.runtime")
    options = compiler.make_backend(driver.driver.active.get_current_target()).parse_options({})
    return dict(json.loads(json.dumps(vars(options), default=str)))


def _kept(directory: Path, function: Any) -> str:
    """Copy the file of a module that only its own generator can import; "" for any other."""
    if importlib.machinery.PathFinder.find_spec(function.__module__.partition(".")[0]) is not None:
        return ""
    source = function.__code__.co_filename
    directory.mkdir(exist_ok=True)
    shutil.copyfile(source, directory / os.path.basename(source))
    return str(os.path.basename(source))
