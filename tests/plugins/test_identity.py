import hashlib
from types import SimpleNamespace

import pytest

from harness.plugins import identity, observed
from harness.records import Side
from tests.plugins.target import PLUGINS, make_cell, run


@pytest.mark.slow
def test_the_identity_is_what_the_process_found_and_not_what_was_asked_for(aot_record):
    import torch
    import triton

    found = aot_record.identity
    assert (found.torch, found.triton) == (torch.__version__, triton.__version__)
    assert found.plugins == tuple(f"harness.plugins.{name}" for name in PLUGINS)
    # the provider's own Config parsed these; its defaults are 1000 and 100
    assert (found.warmup_ms, found.rep_ms, found.level) == (10, 20, "core")
    assert found.compile_cache == "cell" and found.autotune_digest == ""
    assert found.device_model == found.driver == ""


@pytest.mark.slow
def test_two_cells_of_one_side_have_equal_identities_but_for_the_record(aot_record, aot_replay):
    from harness.records import Role, identity_fields

    fields = {*identity_fields(Role.COMPARED), *identity_fields(Role.AXIS)} - {"autotune_mode", "autotune_digest"}
    differing = [name for name in fields if getattr(aot_record.identity, name) != getattr(aot_replay.identity, name)]
    assert differing == []
    record = (aot_record.attempt / "autotune.json").read_bytes()
    assert aot_replay.identity.autotune_digest == hashlib.sha256(record).hexdigest()


@pytest.mark.slow
def test_the_switch_is_apart_from_the_environment_and_an_unset_variable_is_seen_as_unset(tmp_path):
    side = Side("A", make_cell().side.python, (), {"DISABLE_MMA_V3": "1", "TRITON_F32_DEFAULT": None})
    env = {"DISABLE_MMA_V3": "1", "MLIR_ENABLE_TIMING": "0", "SOMEWHERE": "x"}
    found = run(tmp_path / "run", "halved", make_cell(side=side, pytest_args=("--dtypes", "float16")), **env).identity
    assert found.switch == {"DISABLE_MMA_V3": "1", "TRITON_F32_DEFAULT": None}
    assert found.env.get("MLIR_ENABLE_TIMING") == "0"
    assert not {"DISABLE_MMA_V3", "SOMEWHERE", "TRITON_CACHE_DIR"} & found.env.keys()
    assert found.dtypes == ("float16",)


@pytest.mark.slow
def test_without_a_test_there_is_no_identity_and_pytests_own_message_is_kept(tmp_path):
    ran = run(tmp_path / "run", "no_such_test")
    assert ran.rc == 5 and not (ran.attempt / "run_identity.json").exists()
    assert "deselected" in ran.log


def pytest_config(options=(), plugins=()):
    manager = SimpleNamespace(list_name_plugin=lambda: list(plugins))
    return SimpleNamespace(pluginmanager=manager, getoption=lambda name, default=None: dict(options).get(name, default))


def test_what_the_provider_parsed_goes_before_what_pytest_was_given():
    class Level:
        value = "core"

    conftest = SimpleNamespace(Config=SimpleNamespace(bench_level=Level(), warm_up=7))
    config = pytest_config({"--level": "comprehensive", "--iter": "20"}, [("/x/benchmark/conftest.py", conftest)])
    assert identity.effective(config, "bench_level", "--level") == "core"
    assert identity.effective(config, "repetition", "--iter") == "20"
    assert identity.effective(config, "shape_file", "--shape_file") == ""


def test_the_shape_file_is_named_by_its_content(tmp_path):
    path = tmp_path / "core_shapes.yaml"
    path.write_text("mm: {}\n")
    current = SimpleNamespace(cell=make_cell())
    found = identity.shapes(current, pytest_config({"--shape_file": str(path)}))
    assert found == f"file core_shapes.yaml sha256:{hashlib.sha256(b'mm: {}' + bytes([10])).hexdigest()[:16]}"
    assert identity.shapes(current, pytest_config()) == "file"


def test_only_what_can_change_a_number_is_compared_of_the_environment(monkeypatch):
    changing = {"MUSA_VISIBLE_DEVICES", "USE_FLAGTUNE", "HIP_LAUNCH_BLOCKING", "HSA_OVERRIDE_GFX_VERSION"}
    for name in ("FLAGTREE_RLC_ENHANCE", "PATH_TO_X", "FLAGGEMS_DB_URL", *changing):
        monkeypatch.setenv(name, "1")
    found = observed.relevant_env(left_out=["FLAGTREE_RLC_ENHANCE"])
    assert changing <= found.keys()
    assert not {"FLAGTREE_RLC_ENHANCE", "PATH_TO_X", "FLAGGEMS_DB_URL"} & found.keys()


class FakeTorch(SimpleNamespace):
    def __init__(self, uuid, hip=None):
        properties = SimpleNamespace(name="NVIDIA H200", uuid=uuid)
        device = SimpleNamespace(current_device=lambda: 0, get_device_properties=lambda index: properties)
        super().__init__(cuda=device, version=SimpleNamespace(cuda="13.0", hip=hip))


@pytest.mark.parametrize(
    "uuid, hip, found",
    [
        ("8932f937-d72c-4106-c12f-20bd9faed9f6", None, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"),
        ("8932f937-d72c-4106-c12f-20bd9faed9f6", "6.4", "8932f937-d72c-4106-c12f-20bd9faed9f6"),
        ("MIG-8932f937", None, "MIG-8932f937"),
        ("", None, ""),
    ],
)
def test_a_device_is_named_as_its_vendors_tools_name_it(monkeypatch, uuid, hip, found):
    monkeypatch.setitem(observed.sys.modules, "torch", FakeTorch(uuid, hip))
    assert observed.device("cuda") == ("NVIDIA H200", found)
    assert observed.device("meta") == ("", "")


def test_the_runtime_names_every_library_torch_was_built_for(monkeypatch):
    monkeypatch.setitem(observed.sys.modules, "torch", FakeTorch("", hip="6.4"))
    assert observed.runtime_version() == "cuda 13.0 hip 6.4"


def test_the_build_of_triton_is_known_by_its_library():
    version, digest = observed.triton_build().split()
    assert len(digest) == 12 and version
    assert len(observed.triton_digest()) == 64


def test_the_harness_is_known_by_the_sources_it_loaded(tmp_path, monkeypatch):
    path = tmp_path / "part.py"
    path.write_text("one")
    monkeypatch.setitem(observed.sys.modules, "harness_test", SimpleNamespace(__file__=str(path)))
    before = observed.loaded_digest("harness_test")
    observed._file_sha256.cache_clear()
    path.write_text("two")
    assert observed.loaded_digest("harness_test") != before
