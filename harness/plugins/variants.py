"""pytest plugin: which kernels were compiled, which of them a row launched, and what their code is.

Listens to Triton's compiler (every compile, cached or fresh) and, only while asked to, to its launches, so that a timed
launch is not slowed down. The cell's fingerprint.json is written at the end, also after a failure. It must not know
timers or tuners.
PYTEST_DONT_REWRITE: another plugin may import this one before pytest does.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness import codec, stages
from harness.plugins import keys, session, specializations, texts
from harness.records import Fingerprint, Variant


def pytest_load_initial_conftests() -> None:
    """Before any conftest: a kernel that a provider compiles while it is imported counts too."""
    observer().install()
    keys.settle()
    if session.current().cell.round == 0:
        specializations.watch()


def pytest_collection_finish(session: Any) -> None:
    """Nothing is compiled yet for a row, and no device is held."""
    if session.items:
        keys.prepare()


def pytest_sessionfinish() -> None:
    """Write what this process compiled and launched; of round 0 also how to compile it again."""
    current, found = session.current(), observer()
    codec.write(current.attempt / "fingerprint.json", found.fingerprint())
    if current.cell.round == 0:
        specializations.write(current.attempt, found.launched)
    if current.cell.round == 1:
        texts.keep(current.attempt, found.launched_files(texts.STAGE))


@cache
def observer() -> Observer:
    """The one observer of this process."""
    return Observer()


@dataclass(frozen=True)
class Compilation:
    """One call of the compiler: the variant's cache hash, how long it took, and whether it was no cache hit."""

    hash: str
    milliseconds: float
    fresh: bool


@dataclass(frozen=True)
class Compiled:
    """What the compiler said of a variant: its source object, metadata and files (name -> path)."""

    source: Any
    metadata: Mapping[str, Any]
    files: Mapping[str, str]


class Observer:
    """Joins three of Triton's hooks: compiled (hash -> source), loaded (function -> hash), launched (function)."""

    def __init__(self) -> None:
        self.available = False
        self.compile_count = 0
        self.cache_hits = 0
        self.kernels: dict[int, Any] = {}  # JIT functions compiled so far; held, for capture needs their code loaded
        self._compiled: dict[str, Compiled] = {}
        self._fresh: set[str] = set()
        self._launched: set[str] = set()
        self._loaded: dict[Any, str] = {}
        self._ids: dict[str, str] = {}  # variant id -> hash
        self._described: dict[str, Variant] = {}
        self._collecting: list[list[Compilation]] = []
        self._launches: dict[str, None] | None = None

    def install(self) -> None:
        """Put the compile listener and the load hook in place, behind any that are there already."""
        knobs = _knobs()
        if knobs is None or not hasattr(knobs.runtime, "kernel_load_end_hook"):
            reason = "this triton has no knobs.compilation.listener or kernel_load_end_hook"
            session.current().emit_event("FINGERPRINT_UNAVAILABLE", "", reason=reason)
            return
        earlier = knobs.compilation.listener

        def listener(**heard: Any) -> None:
            if earlier is not None:
                earlier(**heard)
            self._on_compiled(**heard)

        knobs.compilation.listener = listener
        _hook(knobs.runtime, "kernel_load_end_hook", self._on_loaded)
        self.available = True

    @contextmanager
    def compilations(self) -> Iterator[list[Compilation]]:
        """Collects the compilations within the block, less those that an inner block collects."""
        heard: list[Compilation] = []
        self._collecting.append(heard)
        try:
            yield heard
        finally:
            self._collecting.remove(heard)

    @contextmanager
    def launches(self) -> Iterator[dict[str, None]]:
        """Collects the hashes of the variants launched within the block, in order of their first launch."""
        knobs, seen = _knobs(), dict[str, None]()
        if not self.available or knobs is None:
            yield seen
            return
        self._launches = seen
        unhook = _hook(knobs.runtime, "launch_enter_hook", self._on_launch)
        try:
            yield seen
        finally:
            unhook()
            self._launches = None
            self._launched.update(seen)

    def variant(self, hash: str) -> Variant:
        """The variant with that cache hash; its files are read and digested once."""
        if hash not in self._described:
            self._described[hash] = self._describe(hash)
        return self._described[hash]

    @property
    def launched(self) -> tuple[str, ...]:
        """The hashes of every variant launched by a row, in the order they were compiled in."""
        return tuple(hash for hash in self._compiled if hash in self._launched)

    def fingerprint(self) -> Fingerprint:
        """Every variant that was launched or belongs to a row. A tuner's losers are counted, not read: recording
        one operator left 557 variants and 193 MB of text."""
        variants = [
            dataclasses.replace(self.variant(hash), compiled=hash in self._fresh, launched=hash in self._launched)
            for hash in dict.fromkeys([*self._described, *sorted(self._launched)])
        ]
        current, ordered = session.current(), tuple(sorted(variants, key=lambda item: item.id))
        own = current.own_cache or current.started_cold
        return Fingerprint(ordered, self.compile_count, self.cache_hits, own)

    def launched_files(self, stage: str) -> dict[str, str]:
        """Variant id -> the file of `stage`, of the launched variants that have one."""
        files = {self.variant(hash).id: self._compiled[hash].files for hash in sorted(self._launched)}
        named = {id: [path for name, path in own.items() if name.endswith(f".{stage}")] for id, own in files.items()}
        return {id: paths[0] for id, paths in named.items() if paths}

    def _on_compiled(self, src: Any, metadata: Mapping[str, Any], metadata_group: Any, times: Any, cache_hit: bool) -> None:  # fmt: skip # noqa: E501
        hash, milliseconds = str(metadata["hash"]), times.total / 1000
        self._compiled[hash] = Compiled(src, dict(metadata), dict(metadata_group))
        if cache_hit:
            self.cache_hits += 1
        else:
            self.compile_count += 1
            self._fresh.add(hash)
        kernel = getattr(src, "fn", None)  # an IR source has none
        self.kernels[id(kernel)] = kernel
        session.current().charge("compile", milliseconds / 1000)
        if self._collecting:
            self._collecting[-1].append(Compilation(hash, milliseconds, not cache_hit))

    def _on_loaded(self, module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str) -> None:
        self._loaded[function] = hash

    def _on_launch(self, metadata: Any) -> None:
        data = metadata.data if hasattr(metadata, "data") else metadata.get()  # .get() would run the kernel's own hook
        hash = self._loaded.get(data.get("function"))
        if hash in self._compiled and self._launches is not None:
            self._launches[hash] = None

    def _describe(self, hash: str) -> Variant:
        compiled = self._compiled[hash]
        source, described = compiled.source, stages.describe(compiled.files)
        name = str(getattr(source, "name", compiled.metadata.get("name", "")))
        signed, constants, attrs = (getattr(source, part, {}) for part in ("signature", "constants", "attrs"))
        identity, signature, options = stages.variant_id(name, signed, constants, attrs, compiled.metadata)
        return Variant(
            id=self._own_id(identity, hash),
            kernel=name,
            signature=signature,
            options=options,
            stages=described.stages,
            code=described.code,
            metrics=described.metrics,
            compiled=False,
            launched=False,
        )

    def _own_id(self, identity: str, hash: str) -> str:
        """Two kernels of one name, signature and options (of two modules) are numbered in order of appearance."""
        number, own = 1, identity
        while self._ids.setdefault(own, hash) != hash:
            number += 1
            own = f"{identity}#{number}"
        return own


def _knobs() -> Any:
    try:
        return importlib.import_module("triton.knobs")
    except ModuleNotFoundError:  # before Triton 3.4
        return None


def _hook(owner: Any, name: str, function: Callable[..., None]) -> Callable[[], None]:
    """Add `function` to a hook, a chain (3.5 on) or a single slot; returns what takes it out again."""
    present = getattr(owner, name)
    if hasattr(present, "add"):
        present.add(function)
        return lambda: present.remove(function)
    setattr(owner, name, function)
    return lambda: setattr(owner, name, present)
