"""The `cuda_graph` timer: capture many calls, replay them, so that launching costs (almost) nothing.

The figures are upstream's do_bench_cudagraph, through the device interface of the active driver instead of torch.cuda:
one call to warm up, the number of calls from five more, ten replays, the mean of each.

Warm, as upstream, the second-level cache holds what the call before left in it. Flushed, the graph flushes before
every call, and the time of a second graph of as many flushes alone is taken out, replay by replay in turn, so that
what drifts takes both along. What remains of a memory-bound call agrees with do_bench, whose events stand between
flush and call; it has one gap between two kernels in it, as a warm value has, where do_bench has its events'. Its
noise is that of the flush: some 60 us on an H200, so of a call of 1 us it can say little, and a remainder that is no
time at all is for the caller to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.plugins import capture
from harness.plugins.capture import CaptureFailed as CaptureFailed
from harness.plugins.capture import CapturePoisoned as CapturePoisoned
from harness.records import CaptureTexts

ESTIMATE_CALLS = 5
REPLAYS = 10
#: Calls captured when five of them were too quick for the clock.
CALLS_IF_TOO_QUICK = 1000


@dataclass(frozen=True)
class Device:
    """Where to capture: a torch device module, the vendor's wordings, and the JIT functions that must stay loaded."""

    interface: Any
    texts: CaptureTexts
    kernels: Iterable[Any] = ()


@dataclass(frozen=True)
class Calls:
    """What to time: the call, tensors whose gradients are dropped before it, how to flush the cache (None: warm)."""

    call: Callable[[], Any]
    gradients: Sequence[Any] = ()
    flush: Callable[[], Any] | None = None

    def __call__(self) -> None:
        for tensor in self.gradients:
            tensor.grad = None
        self.flushed()

    def flushed(self) -> None:
        """Flush where asked to, and call: what the number of calls is estimated from."""
        if self.flush is not None:
            self.flush()
        self.call()


def replayed(calls: Calls, rep_ms: float, device: Device) -> list[float]:
    """Ten means over the captured calls, in ms each; any of them may be no possible time.

    Raises CaptureFailed where the call cannot be captured, CapturePoisoned where the process is lost by that, or what
    the call raised.
    """
    interface = device.interface
    with interface.stream(interface.Stream()):
        calls.call()
        _forget(calls.gradients)
        count = _calls_to_capture(calls.flushed, rep_ms, interface)
        times, failure = capture.attempted(lambda: _replays(calls, count, device), device.texts)
    if failure:
        capture.check_alive(calls.call, interface, failure)
        raise CaptureFailed(failure)
    return times


def _calls_to_capture(call: Callable[[], Any], rep_ms: float, interface: Any) -> int:
    estimate_ms = _elapsed(lambda: _repeat(call, ESTIMATE_CALLS), interface) / ESTIMATE_CALLS
    return max(1, int(rep_ms / estimate_ms)) if estimate_ms > 0 else CALLS_IF_TOO_QUICK


def _replays(calls: Calls, count: int, device: Device) -> list[float]:
    interface, flush = device.interface, calls.flush
    with capture.stillness(device.kernels):
        graph = capture.recorded(lambda: _repeat(calls, count), interface)
        if flush is None:
            return [_elapsed(graph.replay, interface) / count for _ in range(REPLAYS)]
        idle = capture.recorded(lambda: _repeat(flush, count), interface)
        return [(_elapsed(graph.replay, interface) - _elapsed(idle.replay, interface)) / count for _ in range(REPLAYS)]


def _repeat(action: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        action()


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
