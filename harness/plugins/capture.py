"""One capture of device work into a graph: what must hold still meanwhile, and what a failed one leaves behind.

The vendor's own wordings (Instrument.capture_texts) decide what a failure means. It must not know timers or rows.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from harness.plugins import session
from harness.records import CaptureTexts

GRAPH_CLASSES = ("CUDAGraph", "MUSAGraph", "NPUGraph")
STATE_METHODS = ("graphsafe_get_state", "graphsafe_set_state", "clone_state")
#: Graphs whose capture did not end: torch's pinned-memory allocator keeps asking them for their capture's id.
_unended: list[Any] = []


class CaptureFailed(RuntimeError):
    """The call cannot be captured, and the device is well: time it directly."""


class CapturePoisoned(session.EndsCell):
    """The attempt to capture left the device unusable for this process: nothing that follows here is trusted."""


def recorded(body: Callable[[], None], interface: Any) -> Any:
    """The graph of what `body` launches on the current device. Whatever goes wrong inside is raised as it is."""
    pool = _Pool(interface)
    graph = _graph_class(interface)()
    with _scratch_randomness(interface):
        try:
            with interface.graph(graph, **pool.arguments):
                body()
        except BaseException:
            pool.close(graph)
            raise
    interface.synchronize()
    return graph


def attempted(action: Callable[[], list[float]], texts: CaptureTexts) -> tuple[list[float], str]:
    """(times, "") of a capture and its replays, or ([], why) where they failed and may be done without.

    Raises CapturePoisoned, or the error itself where the kernel failed (also at a wording nobody knows, and at what
    is no RuntimeError). A failure is told by its text alone, for the error holds the frames that hold the graph.
    """
    try:
        return action(), ""
    except CaptureFailed:
        raise  # told before anything was attempted
    except RuntimeError as error:
        kind, text = classified(error, texts)
        if kind == "poisoned":
            raise CapturePoisoned(text) from error
        if kind != "recoverable":
            error.caliber_capturing = True  # type: ignore[attr-defined]
            raise
        return [], text


def classified(error: BaseException, texts: CaptureTexts) -> tuple[str, str]:
    """(class, text) of a failed capture: leaving it raises too, and hides what went wrong first, so all count.

    Running out of memory is recoverable: the graph's own memory comes on top of what the call needs.
    """
    chain = [f"{type(link).__name__}: {str(link).strip()}" for link in _chain(error)]
    kind = _class_of("\n".join(chain), texts)
    telling = next((text for text in reversed(chain) if _class_of(text, texts) == kind), chain[0])
    return kind, telling.split("\n")[0][:300]


def _class_of(text: str, texts: CaptureTexts) -> str:
    found = texts.classify(text)
    known = any(wording in text for wording in texts.fatal)
    return "recoverable" if found == "fatal" and not known and _is_memory(text) else found


def _is_memory(text: str) -> bool:
    return "out of memory" in text.lower()


def known_fault(error: BaseException, texts: CaptureTexts) -> str:
    """The line of a kernel that failed on the device, as the vendor words it, in `error` or behind it; else ""."""
    for link in _chain(error):
        for line in str(link).splitlines():
            if any(wording in line for wording in texts.fatal):
                return line.strip()
    return ""


def check_alive(call: Callable[[], Any], interface: Any, failure: str) -> None:
    """Run `call` once more after a failed capture. Raises CapturePoisoned where the device does not answer any more."""
    try:
        interface.synchronize()
        call()
        interface.synchronize()
    except RuntimeError as error:
        if _is_memory(str(error)):
            raise  # the call itself no longer fits
        raise CapturePoisoned(f"{failure}; then {type(error).__name__}: {str(error).strip()}") from error


@contextmanager
def stillness(kernels: Iterable[Any]) -> Iterator[None]:
    """No garbage collection, and every compiled kernel of the JIT functions `kernels` stays referenced.

    A kernel that is collected, or just dropped by its last owner, unloads its module: in the middle of a capture that
    invalidates the capture, before a replay it pulls the code from under it (triton #10712, sglang #35427).
    """
    gc.collect()
    held = [list(_values(cache)) for kernel in kernels for cache in _values(getattr(kernel, "device_caches", {}))]
    with ExitStack() as ending:
        ending.callback(held.clear)
        if gc.isenabled():
            ending.callback(gc.enable)
        gc.disable()
        yield


def _values(container: Any) -> list[Any]:
    """What a cache holds: Triton's is {device: (kernels by key, ...)}."""
    if isinstance(container, dict):
        return list(container.values())
    return [item for part in container for item in _values(part)] if isinstance(container, tuple) else []


@contextmanager
def _scratch_randomness(interface: Any) -> Iterator[None]:
    """The default generators work on copies of their states within the block; runtimes without them have no need.

    A failed capture leaves the state it used in capture mode, and every later random call in the process fails
    ("Offset increment outside graph capture", ACE-Step-1.5 #587). The copy is left behind with the graph that used it.
    """
    generators = [
        generator
        for generator in getattr(interface, "default_generators", None) or ()
        if all(hasattr(generator, name) for name in STATE_METHODS)
    ]
    with ExitStack() as restoring:
        for generator in generators:
            restoring.callback(generator.graphsafe_set_state, generator.graphsafe_get_state())
            generator.graphsafe_set_state(generator.clone_state())
        yield


class _Pool:
    """The memory of one capture, ours where the runtime lets us: a failed capture must be closed by hand.

    Before torch 2.12 a capture that ends in an error is never closed in the allocator (pytorch #180395), and every
    later one in the process fails with `captures_underway.empty() INTERNAL ASSERT FAILED`.
    """

    def __init__(self, interface: Any) -> None:
        runtime = str(getattr(interface, "__name__", "")).rpartition(".")[2]
        native = importlib.import_module("torch")._C if runtime else None
        tools = [getattr(native, f"_{runtime}_{verb}", None) for verb in ("endAllocateToPool", "releasePool")]
        self.arguments: dict[str, Any] = {}
        self._closing: list[Any] = []
        if all(tools) and hasattr(interface, "graph_pool_handle"):
            self.arguments = {"pool": interface.graph_pool_handle()}
            self._closing = tools
            self._device = interface.current_device()

    def close(self, graph: Any) -> None:
        """Give back the memory of a capture that failed. What was closed already says so by an error."""
        if _has_ended(graph):
            graph.reset()
            return
        _unended.append(graph)
        for tool in self._closing:
            with suppress(RuntimeError):
                tool(self._device, self.arguments["pool"])


def _has_ended(graph: Any) -> bool:
    """True where only the body failed: the capture itself ended well, and the graph owns its memory."""
    try:
        graph.pool()
    except (RuntimeError, AttributeError):
        return False
    return True


def _graph_class(interface: Any) -> Any:
    for name in GRAPH_CLASSES:
        if hasattr(interface, name):
            return getattr(interface, name)
    raise CaptureFailed(f"{getattr(interface, '__name__', interface)} has no graph class to capture into")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
