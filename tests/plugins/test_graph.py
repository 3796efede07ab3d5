import pytest

from harness.plugins import graph
from tests.fixtures.plugins.fake_device import Clock, Interface

LAUNCH_MS = 0.25


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr(Clock, "captured", None)
    monkeypatch.setattr(Clock, "poisoned", False)
    monkeypatch.delenv("FAKE_CAPTURE", raising=False)
    return Interface()


def launch():
    if Clock.captured is None:
        Clock.now += LAUNCH_MS
    else:
        Clock.captured += LAUNCH_MS


def test_a_value_is_the_mean_over_the_captured_calls(device):
    assert graph.replayed(launch, 20, (), device) == [LAUNCH_MS] * 10


def test_as_many_calls_are_captured_as_fit_into_rep(device):
    calls = []
    graph.replayed(lambda: (calls.append(Clock.captured is not None), launch()), 20, (), device)
    assert calls.count(True) == 20 / LAUNCH_MS


def test_calls_too_quick_for_the_clock_are_captured_a_thousand_times(device):
    calls = []
    graph.replayed(lambda: calls.append(Clock.captured is not None), 20, (), device)
    assert calls.count(True) == 1000


def test_a_call_that_cannot_be_captured_is_told_and_the_device_is_tried(device, monkeypatch):
    monkeypatch.setenv("FAKE_CAPTURE", "fails")
    with pytest.raises(graph.CaptureFailed, match="operation not permitted when stream is capturing$"):
        graph.replayed(launch, 20, (), device)
    assert Clock.captured is None


def test_a_poisoned_device_is_never_asked_for_a_direct_time(device, monkeypatch):
    monkeypatch.setenv("FAKE_CAPTURE", "poisons")
    with pytest.raises(graph.CapturePoisoned, match="unknown error"):
        graph.replayed(launch, 20, (), device)


def test_a_kernel_that_failed_on_the_device_stays_a_failure(device, monkeypatch):
    monkeypatch.setenv("FAKE_CAPTURE", "faults")
    with pytest.raises(RuntimeError, match="illegal memory access") as raised:
        graph.replayed(launch, 20, (), device)
    assert type(raised.value) is RuntimeError


def test_an_error_that_is_not_about_capture_is_not_turned_into_one(device):
    def broken():
        raise RuntimeError("CUDA out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        graph.replayed(broken, 20, (), device)


def test_the_cause_of_a_failed_capture_is_looked_for_behind_the_last_error(device, monkeypatch):
    # leaving the capture raises too, and hides the kernel's own fault
    def faulty():
        if Clock.captured is not None:
            raise RuntimeError("CUDA error: misaligned address")

    class Masking(Interface):
        def graph(self, captured):
            inner = super().graph(captured)

            class Context:
                def __enter__(self):
                    return inner.__enter__()

                def __exit__(self, *error):
                    raise RuntimeError("operation failed due to a previous error during capture")

            return Context()

    with pytest.raises(RuntimeError, match="previous error during capture") as raised:
        graph.replayed(faulty, 20, (), Masking())
    assert not isinstance(raised.value, graph.CaptureFailed)
