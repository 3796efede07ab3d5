import pytest

from harness.plugins import aot
from tests.plugins.target import make_cell, run

pytestmark = pytest.mark.slow


def test_the_real_compiler_makes_a_binary_for_a_device_that_is_not_there(aot_record):
    assert aot_record.rc == 0, aot_record.log
    assert aot_record.identity.target == "cuda:90"
    assert aot_record.identity.device_uuid == ""
    for variant in aot_record.fingerprint.variants:
        assert [*variant.stages] == ["ttir", "ttgir", "llir", "ptx", "cubin"]
        assert variant.code and variant.metrics["registers"] > 0


def test_an_amd_target_compiles_in_the_same_interpreter(tmp_path):
    ran = run(tmp_path / "hip", "double", make_cell(target="hip:gfx942", pytest_args=("--dtypes", "float16")))
    assert ran.rc == 0, ran.log
    assert ran.identity.target == "hip:gfx942"
    assert {tuple(variant.stages) for variant in ran.fingerprint.variants} == {
        ("ttir", "ttgir", "llir", "amdgcn", "hsaco")
    }
    assert all(row.value > 0 for row in ran.rows)


def test_a_target_that_this_triton_cannot_compile_for_is_refused_by_name(tmp_path):
    ran = run(tmp_path / "none", "double", make_cell(target="cuda:75"))
    assert ran.rc == 4
    assert "AOT_TARGET cuda:75: no device figures for it; known targets: cuda:80" in ran.log
    assert not ran.rows


def test_a_triton_without_the_backend_says_which_it_has(monkeypatch):
    import triton.backends

    nvidia_only = {"nvidia": triton.backends.backends["nvidia"]}
    monkeypatch.setattr(triton.backends, "backends", nvidia_only)
    with pytest.raises(aot.AotError, match=r"hip:gfx942: triton .* has backends \['nvidia'\], none for 'hip'"):
        aot.activate("hip:gfx942")


@pytest.mark.parametrize("target, warp", [("cuda:90", 32), ("hip:gfx942", 64), ("hip:gfx90a", 64)])
def test_a_target_has_the_figures_that_pruning_functions_read(target, warp):
    figures = aot.device_figures(target)
    assert figures["warpSize"] == warp
    assert min(figures[name] for name in aot.FIGURES) > 0


def test_nothing_can_be_timed_on_a_device_that_is_not_there():
    with pytest.raises(aot.AotError, match="no device to time on"):
        aot.AotDriver(None, {}).get_device_interface()


def test_a_launch_calls_the_hooks_and_launches_nothing():
    told = []
    aot.AotLauncher(None, None)(1, 1, 1, 0, 7, None, "data", told.append, told.append, object())
    aot.AotLauncher(None, None)(1, 1, 1, 0, 7, None, "data", None, None)
    assert told == ["data", "data"]
