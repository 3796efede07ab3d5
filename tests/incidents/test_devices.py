"""Incidents of devices, visibility and graph capture (facts/incidents.md)."""

from __future__ import annotations

import pytest

from harness import backends
from harness.backends import cuda
from tests.backends import fakes

MUSA = backends.get("musa").capture_texts
CUDA = backends.get("cuda").capture_texts


def test_visible_devices_may_be_uuids_prefixes_and_mig_names():
    """vLLM #41848 and others: int("GPU-8932f937") crashed."""
    mig = cuda.parse(fakes.text("nvidia_smi_L_mig.txt"))
    for token in ("GPU-04d228d3", "MIG-377e0049-5c3f-5a0e-8d0b-1f4a6f1b2c3d"):
        assert backends.resolve(token, mig).uuid.startswith(token)


def test_an_index_becomes_a_uuid_before_it_reaches_the_runtime():
    """nvidia-smi orders by bus, CUDA by speed: index N of one is not N of the other (pytorch #94568)."""
    run = fakes.answering({"nvidia-smi -L": fakes.text("nvidia_smi_L.txt")})
    assert backends.get("cuda").resolve("1", run=run, environ={}).visible == fakes.H200_1


def test_capture_is_a_declared_capability_and_musa_has_it():
    """Pinned off for MUSA long after it worked, campaigns measured launch overhead (batch_norm 0.0758 -> 0.0089 ms)."""
    assert backends.instrument(backends.get("musa"), "auto", "").timer == "cuda_graph"


def test_the_plugin_plan_is_never_empty():
    """A worker with a list of its own had no timing plugin; pytest then prints a table that looks well-formed."""
    for backend in backends.ALL:
        planned = backends.instrument(backend, "off", "cuda:90" if backend.name == "aot" else "").plugins
        assert "harness.plugins.timing" in planned and "harness.plugins.identity" in planned


def test_compat_plugins_are_planned_first_and_only_for_their_vendor():
    """They rewrite markers at collection and must never leak to other backends; only the device comes before."""
    for backend in backends.ALL:
        planned = backends.instrument(backend, "auto", "cuda:90" if backend.name == "aot" else "").plugins
        assert ("harness.plugins.compat_musa" in planned) is (backend.name == "musa")
    first = backends.instrument(backends.get("musa"), "auto", "").plugins[:3]
    assert first == tuple(f"harness.plugins.{name}" for name in ("device", "compat_musa", "identity"))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("MUSA error: operation not permitted when stream is capturing", "recoverable"),
        ("RuntimeError: current_seed is not callable during capture", "recoverable"),
        ("MUSA error: unknown error", "poisoned"),
    ],
)
def test_musa_wordings_are_its_own(message, expected):
    """They matched none of CUDA's markers, so a poisoned process went on and printed zero rows."""
    assert MUSA.classify(message) == expected


def test_one_vendors_poisoning_is_not_guessed_for_another():
    assert CUDA.classify("CUDA error: unknown error") == "fatal"


def test_a_kernel_that_failed_on_the_device_is_never_a_fallback_latency():
    both = "an illegal memory access was encountered; operation failed due to a previous error during capture"
    assert CUDA.classify(both) == "fatal"


def test_a_failed_capture_that_left_the_generator_capturing_is_poisoning():
    assert CUDA.classify("RuntimeError: Offset increment outside graph capture encountered unexpectedly.") == "poisoned"
