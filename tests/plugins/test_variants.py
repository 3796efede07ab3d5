from types import SimpleNamespace

import pytest

from harness import fingerprint
from harness.plugins import session, variants
from tests.plugins.target import ON_FAKE_DEVICE, make_cell, run

TIMES = SimpleNamespace(total=2000)


@pytest.mark.slow
def test_a_fingerprint_tells_what_was_launched_from_what_was_only_tried(device_record):
    found = device_record.fingerprint
    launched = {variant.id for variant in found.variants if variant.launched}
    assert launched == {name for row in device_record.rows for name in row.variants}
    assert all(variant.compiled for variant in found.variants)
    # the loser of each tuned key was compiled and is counted, but neither launched by a row nor read
    assert found.compile_count > len(found.variants)
    assert {variant.options for variant in found.variants if variant.kernel == "scale_kernel"} == {
        "num_warps=4 num_stages=3"
    }


@pytest.mark.slow
def test_the_names_of_variants_are_the_same_in_every_process(aot_record, aot_replay):
    ids = [[variant.id for variant in ran.fingerprint.variants] for ran in (aot_record, aot_replay)]
    assert ids[0] == ids[1] and len(set(ids[0])) == len(ids[0])


@pytest.mark.slow
def test_a_switch_that_changes_code_changes_stages_and_no_names(tmp_path, aot_record):
    switched = run(tmp_path / "run", "scale", DISABLE_PTXAS_OPT="1")
    plain = {variant.id: variant for variant in aot_record.fingerprint.variants if variant.kernel == "scale_kernel"}
    assert {variant.id for variant in switched.fingerprint.variants} == plain.keys()
    pairs = [(plain[variant.id], variant) for variant in switched.fingerprint.variants]
    assert all(a.stages["ptx"] == b.stages["ptx"] and a.code != b.code for a, b in pairs)


@pytest.mark.slow
def test_a_variant_from_a_warm_cache_does_not_pass_for_a_compiled_one(tmp_path, device_record):
    shared = str(device_record.attempt / "triton")
    warm = run(tmp_path / "warm", "halved", make_cell(**ON_FAKE_DEVICE), TRITON_CACHE_DIR=shared)
    (variant,) = warm.fingerprint.variants
    assert variant.launched and not variant.compiled
    assert (warm.fingerprint.compile_count, warm.fingerprint.cache_hits) == (0, 1)
    assert warm.identity.compile_cache == "warm" and not warm.fingerprint.own_cache
    assert device_record.fingerprint.own_cache
    gate = fingerprint.gate("halved", warm.fingerprint, warm.fingerprint)
    assert gate.verdict == "IR_UNKNOWN"


@pytest.mark.slow
def test_what_the_side_itself_compiled_earlier_is_as_good_as_fresh(tmp_path):
    place = tmp_path / "double" / "cache_A"
    (place / "triton").mkdir(parents=True)
    own = {"TRITON_CACHE_DIR": str(place / "triton"), "CALIBER_CACHE_STAMP": str(place / "stamp.json")}
    first, second = (run(tmp_path / name, "halved", make_cell(**ON_FAKE_DEVICE), **own) for name in ("r1", "r2"))
    assert [ran.fingerprint.compile_count for ran in (first, second)] == [1, 0]
    assert {ran.identity.compile_cache for ran in (first, second)} == {"side"}
    (variant,) = second.fingerprint.variants
    assert variant.launched and not variant.compiled and second.fingerprint.own_cache
    assert fingerprint.gate("halved", first.fingerprint, second.fingerprint).verdict == "NO_CODE_CHANGE"
    other = run(tmp_path / "r3", "halved", make_cell(**ON_FAKE_DEVICE), **own, DISABLE_LLVM_OPT="1")
    assert other.identity.compile_cache == "warm", "filled in another environment"


@pytest.fixture
def current(tmp_path, monkeypatch):
    found = session.Session(make_cell(), tmp_path, started_cold=True)
    monkeypatch.setattr(session, "current", lambda: found)
    return found


def files(directory, name: str, text: str) -> dict[str, str]:
    path = directory / f"{name}.ttir"
    path.write_text(text)
    return {path.name: str(path)}


def heard(observer, hash: str, source, metadata_group, cache_hit=False):
    metadata = {"hash": hash, "name": "kernel", "num_warps": 4}
    observer._on_compiled(
        src=source, metadata=metadata, metadata_group=metadata_group, times=TIMES, cache_hit=cache_hit
    )


def test_a_source_that_is_no_python_function_has_a_fingerprint_too(current, tmp_path):
    observer = variants.Observer()
    heard(observer, "h", SimpleNamespace(name="@from_ir", signature={0: "*fp32"}), files(tmp_path, "k", "module {}"))
    variant = observer.variant("h")
    assert variant.kernel == "@from_ir" and variant.stages.keys() == {"ttir"}


def test_two_kernels_of_one_name_are_two_variants(current, tmp_path):
    observer = variants.Observer()
    for hash in ("one", "two"):
        heard(observer, hash, SimpleNamespace(name="k", signature={}), files(tmp_path, hash, f"module {{{hash}}}"))
    one, two = observer.variant("one"), observer.variant("two")
    assert two.id == f"{one.id}#2" and one.stages != two.stages


def test_compilations_belong_to_the_innermost_block(current, tmp_path):
    observer = variants.Observer()
    source, group = SimpleNamespace(name="k"), files(tmp_path, "k", "module {}")
    with observer.compilations() as outer:
        heard(observer, "a", source, group)
        with observer.compilations() as inner:
            heard(observer, "b", source, group)
        heard(observer, "c", source, group, cache_hit=True)
    assert [(item.hash, item.fresh) for item in outer] == [("a", True), ("c", False)]
    assert [(item.hash, item.milliseconds) for item in inner] == [("b", 2.0)]
    assert current.seconds["compile"] == pytest.approx(0.006)


def test_a_hook_is_taken_out_again_from_a_chain_and_from_a_single_slot():
    class Chain(list):
        add = list.append

    owner = SimpleNamespace(chain=Chain([print]), slot=None)
    for name, before in (("chain", [print]), ("slot", None)):
        unhook = variants._hook(owner, name, len)
        assert getattr(owner, name) in ([print, len], len)
        unhook()
        assert getattr(owner, name) == before


def test_a_triton_without_the_hooks_is_told_and_measures_without_fingerprint(current, monkeypatch):
    monkeypatch.setattr(variants, "_knobs", lambda: None)
    observer = variants.Observer()
    observer.install()
    with observer.launches() as launched:
        pass
    assert not launched and observer.fingerprint().variants == ()
    assert "FINGERPRINT_UNAVAILABLE" in (current.attempt / "events.jsonl").read_text()
