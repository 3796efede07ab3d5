import gc
import weakref
from types import SimpleNamespace

import pytest

from harness import backends
from harness.plugins import capture, graph
from tests.fixtures.plugins.fake_device import Clock, CUDAGraph, Interface

LAUNCH_MS, FLUSH_MS = 0.25, 2.0
TEXTS = backends.get("cuda").capture_texts
CAPTURING = (
    "CUDA error: operation not permitted when stream is capturing\nSearch for `cudaErrorStreamCaptureUnsupported'"
)
LEAVING = "CUDA error: operation failed due to a previous error during capture"


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr(Clock, "captured", None)
    monkeypatch.setattr(Clock, "poisoned", False)
    monkeypatch.delenv("FAKE_CAPTURE", raising=False)
    return Interface()


def launch():
    Clock.spend(LAUNCH_MS)


def flush():
    Clock.spend(FLUSH_MS)


def replayed(call, interface, **calls):
    return graph.replayed(graph.Calls(call, **calls), 20, graph.Device(interface, TEXTS))


def failing_in_capture(error):
    def call():
        if Clock.captured is not None:
            raise error
        launch()

    return call


class Masking(Interface):
    """Leaving an invalidated capture raises too, and hides what went wrong first."""

    def graph(self, captured):
        inner = super().graph(captured)

        class Context:
            def __enter__(self):
                return inner.__enter__()

            def __exit__(self, *error):
                inner.__exit__(None, None, None)
                if error[0] is not None:
                    raise RuntimeError(LEAVING)

        return Context()


def test_a_value_is_the_mean_over_the_captured_calls(device):
    assert replayed(launch, device) == [LAUNCH_MS] * 10


def test_as_many_calls_are_captured_as_fit_into_rep(device):
    calls = []
    replayed(lambda: (calls.append(Clock.captured is not None), launch()), device)
    assert calls.count(True) == 20 / LAUNCH_MS


def test_calls_too_quick_for_the_clock_are_captured_a_thousand_times(device):
    calls = []
    replayed(lambda: calls.append(Clock.captured is not None), device)
    assert calls.count(True) == 1000


def test_the_figures_are_upstreams_call_by_call(device, monkeypatch):
    """The algorithm of triton.testing.do_bench_cudagraph, with a call that takes longer each time it is made."""
    torch, testing = pytest.importorskip("torch"), pytest.importorskip("triton.testing")
    tensor = SimpleNamespace(grad=1, detach_=lambda: None, requires_grad_=lambda wanted: None)

    def slower():
        made.append(tensor.grad)
        Clock.spend(LAUNCH_MS + len(made) / 1024)

    made = []
    ours = replayed(slower, device, gradients=(tensor,))
    our_calls = made
    for name in ("Stream", "Event", "CUDAGraph", "stream", "graph", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, getattr(device, name))
    monkeypatch.setattr(Clock, "now", 0.0)
    made, tensor.grad = [], 1
    assert testing.do_bench_cudagraph(slower, rep=20, grad_to_none=(tensor,), return_mode="all") == ours
    assert made == our_calls


def test_a_flushed_value_is_what_is_left_without_the_flushes(device):
    assert replayed(launch, device, flush=flush) == [LAUNCH_MS] * 10


def test_the_cache_is_flushed_before_each_captured_call_and_as_often_alone(device):
    made = []

    def note(word):
        made.append(word if Clock.captured is not None else "")
        Clock.spend(1.0)

    replayed(lambda: note("call"), device, flush=lambda: note("flush"))
    captured = [word for word in made if word]
    assert captured == ["flush", "call"] * 10 + ["flush"] * 10  # 20 ms of rep, 2 ms for both


def test_the_flushes_are_timed_in_turn_with_the_calls_so_that_drift_takes_both_along(device, monkeypatch):
    slower = [1.0]

    def replay(self):
        slower[0] += 0.01  # the clock of the device droops
        Clock.now += self.milliseconds * slower[0]

    monkeypatch.setattr(CUDAGraph, "replay", replay)
    # Ten replays of each kind one after the other would be off by the droop of ten: 0.1 x 2.0 ms of flushes per call.
    assert max(replayed(launch, device, flush=flush)) < LAUNCH_MS * 1.2


def test_a_remainder_that_is_no_time_is_handed_on_as_it_is(device):
    assert set(replayed(lambda: None, device, flush=flush)) == {0.0}


def test_gradients_are_dropped_before_every_captured_call(device):
    tensor = SimpleNamespace(grad=1, detach_=lambda: None, requires_grad_=lambda wanted: None)
    seen = []

    def backward():
        seen.append(tensor.grad)
        tensor.grad = 1
        launch()

    replayed(backward, device, gradients=(tensor,))
    assert seen[0] == 1 and set(seen[6:]) == {None}


def test_an_item_in_the_call_is_told_by_its_own_error_and_the_device_is_tried(device):
    with pytest.raises(graph.CaptureFailed) as failed:
        replayed(failing_in_capture(RuntimeError(CAPTURING)), Masking())
    assert str(failed.value) == "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    assert Clock.captured is None


@pytest.mark.parametrize(
    "text",
    [
        "Cannot copy between CPU and CUDA tensors during CUDA graph capture unless the CPU tensor is pinned.",
        "Cannot call CUDAGeneratorImpl::current_seed during CUDA graph capture. If you need this call to be captured, "
        "please file an issue. Current cudaStreamCaptureStatus: cudaStreamCaptureStatusActive",
        "Attempt to increase offset for a CUDA generator not in capture mode.",
        "CUDA error: operation would make the legacy stream depend on a capturing blocking stream",
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
    ],
)
def test_what_only_capturing_forbids_is_timed_directly(device, text):
    with pytest.raises(graph.CaptureFailed) as failed:
        replayed(failing_in_capture(RuntimeError(text)), device)
    assert str(failed.value) == f"RuntimeError: {text}"


def test_memory_that_only_the_graph_lacked_is_told_before_what_leaving_the_capture_says(device):
    with pytest.raises(graph.CaptureFailed, match="^RuntimeError: CUDA out of memory"):
        replayed(failing_in_capture(RuntimeError("CUDA out of memory. Tried")), Masking())


def test_a_poisoned_device_is_never_asked_for_a_direct_time(device, monkeypatch):
    monkeypatch.setenv("FAKE_CAPTURE", "poisons")
    with pytest.raises(graph.CapturePoisoned, match="when stream is capturing; then RuntimeError: CUDA error: unknown"):
        replayed(launch, device)


def test_a_vendors_wording_of_a_poisoned_process_is_believed_without_trying_the_device(device, monkeypatch):
    text = "Offset increment outside graph capture encountered unexpectedly."
    monkeypatch.setattr(capture, "check_alive", lambda *arguments: pytest.fail("the device was asked"))
    with pytest.raises(graph.CapturePoisoned, match=text):
        replayed(failing_in_capture(RuntimeError(text)), device)


def test_a_kernel_that_failed_on_the_device_stays_a_failure(device, monkeypatch):
    monkeypatch.setenv("FAKE_CAPTURE", "faults")
    with pytest.raises(RuntimeError, match="illegal memory access") as raised:
        replayed(launch, device)
    assert type(raised.value) is RuntimeError and capture.known_fault(raised.value, TEXTS)


def test_a_kernels_fault_is_looked_for_behind_the_error_that_hides_it(device):
    with pytest.raises(RuntimeError, match="previous error during capture") as raised:
        replayed(failing_in_capture(RuntimeError("CUDA error: misaligned address")), Masking())
    assert not isinstance(raised.value, graph.CaptureFailed)
    assert capture.known_fault(raised.value, TEXTS) == "CUDA error: misaligned address"


def test_a_wording_nobody_knows_is_a_failure_of_the_call(device):
    error = RuntimeError("something nobody has seen yet")
    with pytest.raises(RuntimeError) as raised:
        replayed(failing_in_capture(error), device)
    assert raised.value is error and error.caliber_capturing


def test_another_vendors_wordings_are_not_guessed(device):
    calls = graph.Calls(failing_in_capture(RuntimeError(CAPTURING)))
    with pytest.raises(RuntimeError, match="operation not permitted") as raised:
        graph.replayed(calls, 20, graph.Device(device, backends.get("ascend").capture_texts))
    assert not isinstance(raised.value, graph.CaptureFailed)


@pytest.mark.parametrize("error", [TypeError("unsupported operand"), KeyError("BLOCK"), KeyboardInterrupt()])
def test_what_is_no_runtime_error_goes_on_as_it_is(device, error):
    with pytest.raises(type(error)) as raised:
        replayed(failing_in_capture(error), device)
    assert raised.value is error and gc.isenabled()


def test_an_error_before_the_capture_is_the_calls_own(device):
    def broken():
        raise RuntimeError("CUDA out of memory")

    with pytest.raises(RuntimeError, match="out of memory") as raised:
        replayed(broken, device)
    assert type(raised.value) is RuntimeError


def test_a_call_that_no_longer_fits_after_the_capture_is_out_of_memory_and_no_poison(device):
    def call():
        if Clock.captured is not None:
            refused.append(True)
            raise RuntimeError(CAPTURING)
        if refused:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        launch()

    refused = []
    with pytest.raises(RuntimeError, match="out of memory") as raised:
        replayed(call, device)
    assert type(raised.value) is RuntimeError


def test_a_runtime_without_a_graph_class_cannot_capture(device):
    class Without:
        Event, Stream, stream, synchronize = Interface.Event, object, Interface.stream, Interface.synchronize

    with pytest.raises(graph.CaptureFailed, match="has no graph class to capture into"):
        replayed(launch, Without())


class Generator:
    """A generator as torch has them: `state` is shared with what graphsafe_get_state returns."""

    def __init__(self, state):
        self.state = state

    def graphsafe_get_state(self):
        return Generator(self.state)

    def graphsafe_set_state(self, other):
        self.state = other.state

    def clone_state(self):
        return Generator(dict(self.state))


@pytest.mark.parametrize("how", ["", "fails", "faults"])
def test_a_capture_works_on_a_copy_of_the_random_state_and_takes_it_back(device, monkeypatch, how):
    """A failed capture left torch's generator in capture mode, and every later random call failed (ACE-Step #587)."""
    generator = Generator({"capturing": False})
    first = generator.state
    device.default_generators = (generator,)
    monkeypatch.setenv("FAKE_CAPTURE", how)

    def draw():
        if Clock.captured is not None:
            generator.state["capturing"] = True  # as capture_begin does; a failed capture_end never takes it back
        launch()

    if how:
        with pytest.raises(RuntimeError):
            replayed(draw, device)
    else:
        replayed(draw, device)
    assert generator.state is first and first == {"capturing": False}


@pytest.mark.parametrize("generators", [(), None, (object(),)])
def test_a_runtime_whose_generators_have_no_state_to_guard_needs_no_guard(device, generators):
    """A scratch registration around the capture crashed on a device that has no default generators."""
    device.default_generators = generators
    assert replayed(launch, device) == [LAUNCH_MS] * 10


class Pooled(Interface):
    """A runtime whose allocator must be told of a capture's end: torch before 2.12."""

    __name__ = "torch.fake"

    def __init__(self, ended):
        self.ended, self.passed = ended, []

    def graph_pool_handle(self):
        return (0, 7)

    def current_device(self):
        return 3

    def graph(self, captured, pool=None):
        self.passed.append(pool)
        captured.pool = lambda: pool if self.ended else self.no_pool()
        captured.reset = lambda: self.passed.append("reset")
        return super().graph(captured)

    def no_pool(self):
        raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")


@pytest.fixture
def closed(monkeypatch):
    """What the allocator was asked to close, by a fake torch."""
    calls = []

    def ends(device, pool):
        calls.append(("end", device, pool))
        raise RuntimeError("endAllocatePool: not currently recording to mempool_id")  # torch 2.12 had done it already

    native = SimpleNamespace(_fake_endAllocateToPool=ends, _fake_releasePool=lambda *given: calls.append(given))
    monkeypatch.setitem(__import__("sys").modules, "torch", SimpleNamespace(_C=native))
    return calls


def test_the_memory_of_a_capture_that_never_ended_is_closed_by_hand(device, closed):
    """torch before 2.12 left it open, and every later capture of the process failed (pytorch #180395)."""
    interface = Pooled(ended=False)
    with pytest.raises(graph.CaptureFailed):
        replayed(failing_in_capture(RuntimeError(CAPTURING)), interface)
    assert interface.passed == [(0, 7)]
    assert closed == [("end", 3, (0, 7)), (3, (0, 7))]


def test_a_graph_whose_body_alone_failed_gives_its_own_memory_back(device, closed):
    interface = Pooled(ended=True)
    with pytest.raises(graph.CaptureFailed):
        replayed(failing_in_capture(RuntimeError("CUDA out of memory.")), interface)
    assert interface.passed == [(0, 7), "reset"] and closed == []


def test_a_graph_that_was_replayed_is_not_kept(device):
    made = []

    class Watching(Interface):
        def graph(self, captured):
            made.append(weakref.ref(captured))
            return super().graph(captured)

    replayed(launch, Watching())
    assert [reference() for reference in made] == [None]


class Kernel:
    """A compiled kernel: unloads its code when nobody holds it any more."""


def test_compiled_kernels_outlive_their_owners_until_the_last_replay(device, monkeypatch):
    """A kernel that was dropped during a capture unloaded its module and invalidated it (sglang #35427)."""
    function = SimpleNamespace(device_caches={0: ({"key": Kernel()}, {}, "target", "backend", "binder")})
    loaded = weakref.ref(function.device_caches[0][0]["key"])
    alive = []

    def call():
        if Clock.captured is not None:
            function.device_caches.clear()
        launch()

    def replay(graph_):
        alive.append((loaded() is not None, gc.isenabled()))

    monkeypatch.setattr(CUDAGraph, "replay", replay)
    graph.replayed(graph.Calls(call), 20, graph.Device(device, TEXTS, kernels=[function, None]))
    assert alive == [(True, False)] * 10
    assert loaded() is None and gc.isenabled()
