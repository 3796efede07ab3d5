"""The `cuda_graph` timer: capture many calls, replay them, so that launching costs (almost) nothing.

The figures are upstream's do_bench_cudagraph, through the device interface of the active driver instead of torch.cuda.
The second-level cache is not flushed between calls, so a value from here never pairs with a direct one.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

ESTIMATE_CALLS = 5
REPLAYS = 10
#: Calls captured when five of them were too quick for the clock.
CALLS_IF_TOO_QUICK = 1000
#: The kernel itself failed on the device: timing it some other way would report a broken kernel as a measurement.
FATAL = re.compile(r"illegal memory access|device-side assert|misaligned|launch failure|unspecified launch", re.I)
#: The call cannot be captured.
RECOVERABLE = re.compile(r"captur", re.I)


class CaptureFailed(RuntimeError):
    """The call cannot be captured, and the device is well: time it directly."""


class CapturePoisoned(RuntimeError):
    """The attempt to capture left the device unusable for this process."""


def replayed(call: Callable[[], Any], rep_ms: float, gradients: Sequence[Any], interface: Any) -> list[float]:
    """Ten means over the captured calls, in ms each. Raises CaptureFailed, CapturePoisoned, or what `call` raised."""
    try:
        with interface.stream(interface.Stream()):
            call()
            _forget(gradients)
            count = _calls_to_capture(call, rep_ms, interface)
            graph = _captured(call, count, gradients, interface)
            return [_elapsed(graph.replay, interface) / count for _ in range(REPLAYS)]
    except RuntimeError as error:
        texts = " ".join(str(link) for link in _chain(error))
        if FATAL.search(texts) or not RECOVERABLE.search(texts):
            raise
        _check_alive(call, interface, error)
        raise CaptureFailed(str(error).strip().split("\n")[0]) from error


def _calls_to_capture(call: Callable[[], Any], rep_ms: float, interface: Any) -> int:
    def several() -> None:
        for _ in range(ESTIMATE_CALLS):
            call()

    estimate_ms = _elapsed(several, interface) / ESTIMATE_CALLS
    return max(1, int(rep_ms / estimate_ms)) if estimate_ms > 0 else CALLS_IF_TOO_QUICK


def _captured(call: Callable[[], Any], count: int, gradients: Sequence[Any], interface: Any) -> Any:
    graph = _graph_class(interface)()
    with _no_collection(), interface.graph(graph):
        for _ in range(count):
            for tensor in gradients:
                tensor.grad = None
            call()
    interface.synchronize()
    return graph


def _graph_class(interface: Any) -> Any:
    for name in ("CUDAGraph", "MUSAGraph", "NPUGraph"):
        if hasattr(interface, name):
            return getattr(interface, name)
    raise CaptureFailed(f"{getattr(interface, '__name__', interface)} has no graph class to capture into")


def _elapsed(action: Callable[[], Any], interface: Any) -> float:
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    action()
    end.record()
    interface.synchronize()
    return float(start.elapsed_time(end))


def _forget(gradients: Sequence[Any]) -> None:
    for tensor in gradients:
        tensor.detach_()
        tensor.requires_grad_(True)
        tensor.grad = None


@contextmanager
def _no_collection() -> Iterator[None]:
    """A collection in the middle of a capture may unload a module, which invalidates the capture (triton #10712)."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _check_alive(call: Callable[[], Any], interface: Any, failure: RuntimeError) -> None:
    try:
        interface.synchronize()
        call()
        interface.synchronize()
    except RuntimeError as error:
        raise CapturePoisoned(f"{str(failure).strip()}; then {str(error).strip()}") from failure


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
