"""The `compile` timer: what Triton's compiler took for the kernels of one call, each compiled afresh.

The value is Triton's own account (CompileTimes.total): from the kernel's syntax tree to the stored binary. Every
candidate of a tuner is a reading of its own; the untuned kernels of the call together are the one without a config.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from harness.plugins import aot, session
from harness.plugins.question import Reading
from harness.plugins.variants import Compilation, observer

#: Candidates compiled during the current call: config text -> its compilations, or why it did not compile.
_candidates: dict[str, list[Compilation]] = {}
_rejected: dict[str, str] = {}
_entries: dict[int, Any] = {}


@contextmanager
def candidate(name: str) -> Iterator[Callable[..., tuple[float, float, float]]]:
    """Books the compilations within the block on candidate `name`; yields the benchmark its tuner must use."""

    def benchmark(kernel_call: Callable[[], Any], quantiles: Any = None, **_: Any) -> tuple[float, float, float]:
        try:
            return aot.compile_only(kernel_call)
        except Exception as error:
            _rejected[name] = session.first_line(error)
            raise  # what does not compile or fit is for the tuner to drop, anything else for the row to fail on

    with observer().compilations() as heard:
        yield benchmark
    _candidates.setdefault(name, []).extend(heard)


def compile_call(call: Callable[[], Any]) -> list[Reading]:
    """Run `call` once with nothing compiled yet; one reading per tuning candidate, and one for the untuned rest."""
    _candidates.clear()
    _rejected.clear()
    _forget()
    with observer().launches(), observer().compilations() as untuned, _always_compile():
        call()
    readings = [_reading(name, heard) for name, heard in _candidates.items()]
    if untuned or not readings:
        readings.insert(0, _reading("", untuned))
    return readings


def warm_compiler() -> None:
    """Compile something small: the first compile of a process also loads and sets up the compiler (70 ms and more)."""
    import_module = importlib.import_module
    compiler, driver = import_module("triton.compiler.compiler"), import_module("triton.runtime.driver").driver
    jit = import_module("triton").jit
    language = import_module("triton.language")

    @jit  # type: ignore[untyped-decorator, unused-ignore]
    def warm(pointer):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - a kernel: its source is compiled
        offsets = language.arange(0, 128)
        language.store(pointer + offsets, language.load(pointer + offsets) + 1.0)

    knobs = import_module("triton.knobs").compilation
    with knobs.scope():
        knobs.listener = None  # part of no row and of no fingerprint
        knobs.always_compile = True
        compiler.compile(compiler.ASTSource(warm, {"pointer": "*fp32"}), target=driver.active.get_current_target())


def remember_entries() -> None:
    """FlagGems' LibEntry keeps compiled kernels of its own: learn its instances, so that they can be made to forget."""
    libentry = sys.modules.get("flag_gems.utils.libentry")
    if libentry is None:
        return
    original = libentry.LibEntry.run

    @wraps(original)
    def run(entry: Any, *args: Any, **kwargs: Any) -> Any:
        _entries[id(entry)] = entry
        return original(entry, *args, **kwargs)

    libentry.LibEntry.run = run


def _reading(config: str, heard: Sequence[Compilation]) -> Reading:
    reason = "" if heard else _rejected.get(config, "NOTHING_COMPILED: the call launched no Triton kernel")
    if not all(item.fresh for item in heard):  # a cache hit's time is no compile time
        reason = "COMPILE_CACHED: a kernel of the call came from a cache"
    return Reading(
        config=config,
        value=None if reason else sum(item.milliseconds for item in heard),
        timer="compile",
        l2="none",
        repeat=1,
        reason=reason,
        variants=tuple(dict.fromkeys(item.hash for item in heard)),
    )


def _forget() -> None:
    """Empty every cache of compiled kernels in this process, so that each row compiles all it needs."""
    for kernel in observer().kernels.values():
        getattr(kernel, "device_caches", {}).clear()
    for entry in _entries.values():
        for cache in entry.kernel_cache:
            cache.clear()


@contextmanager
def _always_compile() -> Iterator[None]:
    """Past the cache on disk too; and without a garbage collection in the middle of a compile."""
    compilation = importlib.import_module("triton.knobs").compilation
    enabled = gc.isenabled()
    gc.disable()
    try:
        with compilation.scope():
            compilation.always_compile = True
            yield
    finally:
        if enabled:
            gc.enable()
