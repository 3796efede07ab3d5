"""pytest plugin: record what the tuners chose (round 0), or make them choose it again (every measured cell); or, where
their choice is not under test, make each take its first candidate.

Tuning is a measurement of its own: an A/B in which both sides tune compares two choices, not two compilers. Works on
every tuner derived from Triton's Autotuner, FlagGems' LibTuner included, by standing before the tuner's own cache for
the length of a run: the key is whatever the tuner looks up, so no key formula is copied here. It must not know timers.
PYTEST_DONT_REWRITE: another plugin may import this one before pytest does.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any

from harness import codec
from harness.plugins import compiling, observed, seeding, session
from harness.plugins.replay import First, Recorder, Replayer, ReplayRefused, Seen, refuse
from harness.plugins.tuned import config_text, key_text, same, source_hash, tuned_config
from harness.records import AutotuneRecord


def pytest_configure() -> None:
    """Read the record before anything is timed: a replay without one, or with another op's, is refused at once."""
    try:
        watch()
    except (OSError, codec.CodecError, ReplayRefused) as error:
        raise importlib.import_module("pytest").UsageError(str(error)) from error


def pytest_collection_finish() -> None:
    """The provider is imported by now, and with it every class of tuner."""
    watch().install()


def pytest_sessionfinish() -> None:
    """Write the record, or say how much of it was used."""
    watch().conclude()


@cache
def watch() -> Watch:
    """The one watch of this process: recording, replaying or taking the first, as its cell says."""
    cell = session.current().cell
    timer = cell.instrument.timer
    if cell.autotune == "first":
        return Watch(First())
    if cell.autotune == "record":
        build = observed.triton_build()
        record = AutotuneRecord(cell.op, build, timer, "exclusive", ())
        return Watch(seeding.recorder(session.current().attempt, record, compile_only=timer == "compile"))
    return Watch(Replayer(codec.read(AutotuneRecord, Path(os.environ["CALIBER_AUTOTUNE"])), cell.op, timer))


@contextmanager
def unwatched() -> Iterator[None]:
    """Timed launches go through the tuner's own, unpatched run: a Python wrapper costs microseconds per launch."""
    with watch().lifted():
        yield


class Watch:
    """Patches `run` and `_bench` of every tuner class."""

    def __init__(self, mode: First | Recorder | Replayer) -> None:
        self.mode = mode
        self.compile_only = session.current().cell.instrument.timer == "compile"
        self.consulted = False
        self._patches: list[tuple[type, str, Any, Any]] = []

    def install(self) -> None:
        """Patch every class that defines its own `run`; those defined later inherit from a patched one."""
        bench = self._compile_candidate if self.compile_only else self._timed_candidate
        wrappers = {"run": self._watched_run, "_bench": bench}
        for cls in _tree(importlib.import_module("triton.runtime.autotuner").Autotuner):
            for name in wrappers.keys() & vars(cls).keys():
                original = vars(cls)[name]
                self._patches.append((cls, name, original, wrappers[name](original)))
        for cls, name, _, wrapper in self._patches:
            setattr(cls, name, wrapper)

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Within the block every tuner class is as it was."""
        for cls, name, original, _ in self._patches:
            setattr(cls, name, original)
        try:
            yield
        finally:
            for cls, name, _, wrapper in self._patches:
                setattr(cls, name, wrapper)

    def conclude(self) -> None:
        """The end of the pytest session."""
        if not self.consulted:
            session.current().emit_event("AUTOTUNE_NOT_APPLICABLE", "", reason="no tuner had a choice to make")
        self.mode.conclude()

    def _watched_run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            if len(tuner.configs) < 2 or isinstance(tuner.cache, WatchedCache):  # no choice; or a subclass's super()
                return original(tuner, *args, **kwargs)
            with self._standing_before(tuner, kwargs) as cache:
                kernel = original(tuner, *args, **kwargs)
            if cache.seen is not None:
                self.mode.chosen(cache.seen, tuner.best_config)
            return kernel

        return run

    @contextmanager
    def _standing_before(self, tuner: Any, kwargs: dict[str, Any]) -> Iterator[WatchedCache]:
        own = tuner.cache
        inner = {} if self.compile_only else own  # where every row must compile, nothing chosen before may be found
        cache = WatchedCache(inner, lambda key: self._look_up(tuner, inner, key, kwargs))
        tuner.cache = cache
        session.current().tuned.append(kernel_of(tuner))
        try:
            yield cache
        finally:
            session.current().tuned.pop()
            if tuner.cache is cache:
                tuner.cache = own

    def _look_up(self, tuner: Any, inner: Any, key: Any, kwargs: dict[str, Any]) -> Seen | None:
        mark = (id(tuner), key_text(key))
        if mark in self.mode.seen:
            winner = self.mode.seen[mark][1]
            if winner is not None and key not in inner:
                inner[key] = winner
            return None
        self.consulted = True
        candidates = list(tuner.prune_configs(kwargs))
        seen = Seen(
            kind="libtuner" if any(cls.__name__ == "LibTuner" for cls in type(tuner).__mro__) else "triton",
            kernel=f"{kernel_of(tuner).__module__}.{kernel_of(tuner).__qualname__}",
            source_hash=source_hash(kernel_of(tuner)),
            key=key_text(key),
            candidates=tuple(map(tuned_config, candidates)),
        )
        winner = self.mode.look_up(seen, candidates)
        if winner is not None:
            inner[key] = winner
            if not same(tuned_config(inner[key]), tuned_config(winner)):  # a database keeps its first writer's choice
                refuse(seen.kernel, f"its tuner cache already holds another config for key {seen.key}; isolate it")
        self.mode.seen[mark] = (tuner, winner)  # the tuner is kept alive, so that its id stays its own
        return seen

    def _compile_candidate(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def bench(tuner: Any, *args: Any, config: Any, **meta: Any) -> Any:
            name = config_text(kernel_of(tuner).__name__, tuned_config(config))
            with compiling.candidate(name) as benchmark:
                tuner.do_bench = benchmark  # a tuner's own benchmark would ask the device for events
                return original(tuner, *args, config=config, **meta)

        return bench

    def _timed_candidate(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def bench(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            session.current().beat()  # a sweep over kernels that were compiled before gives no other sign of life
            return original(tuner, *args, **kwargs)

        return bench


class WatchedCache:
    """Stands before a tuner's cache (a dict, or a database) for one run and learns the key from the look-up."""

    def __init__(self, inner: Any, on_look_up: Callable[[Any], Seen | None]) -> None:
        self.seen: Seen | None = None
        self._inner = inner
        self._on_look_up = on_look_up

    def __contains__(self, key: Any) -> bool:
        self.seen = self._on_look_up(key) or self.seen
        return key in self._inner

    def __getitem__(self, key: Any) -> Any:
        return self._inner[key]

    def __setitem__(self, key: Any, config: Any) -> None:
        self._inner[key] = config

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default


def kernel_of(tuner: Any) -> Any:
    """The JIT function at the bottom of a stack of tuners and heuristics."""
    kernel = tuner.fn
    while not hasattr(kernel, "src"):
        kernel = kernel.fn
    return kernel


def _tree(cls: Any) -> Iterator[type]:
    yield cls
    for child in cls.__subclasses__():
        yield from _tree(child)
