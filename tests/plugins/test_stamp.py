import dataclasses

import pytest

from harness import codec
from harness.compilations import CacheStamp
from harness.plugins import stamp
from harness.records import Side
from tests.plugins.target import make_cell


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The stamp of a side's cache, as the runner names it to a cell."""
    path = tmp_path / "double" / "cache_A" / "stamp.json"
    (path.parent / "triton").mkdir(parents=True)
    (tmp_path / "seal.json").write_text("{}")
    monkeypatch.setenv("CALIBER_CACHE_STAMP", str(path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(path.parent / "triton"))
    return path


def test_an_empty_cache_becomes_the_sides_own_and_stays_it(own):
    assert stamp.is_own(make_cell(), is_empty=True)
    found = codec.read(CacheStamp, own)
    assert (found.campaign, found.op, found.side) == ("test", "double", "A") and len(found.seal) == 64
    assert stamp.is_own(make_cell(), is_empty=False)


def test_entries_without_a_stamp_are_foreign(own):
    assert not stamp.is_own(make_cell(), is_empty=False)
    own.write_text("{")
    assert not stamp.is_own(make_cell(), is_empty=False)


@pytest.mark.parametrize("field, value", [("campaign", "other"), ("op", "add"), ("side", Side("B", "python", (), {}))])
def test_the_cache_of_another_is_foreign(own, field, value):
    stamp.is_own(make_cell(), is_empty=True)
    assert not stamp.is_own(dataclasses.replace(make_cell(), **{field: value}), is_empty=False)


def test_a_cache_filled_before_the_campaign_was_sealed_anew_is_foreign(own):
    stamp.is_own(make_cell(), is_empty=True)
    (own.parents[2] / "seal.json").write_text("{ }")
    assert not stamp.is_own(make_cell(), is_empty=False)


def test_a_cache_filled_under_another_switch_or_environment_is_foreign(own, monkeypatch):
    cell = make_cell(side=Side("A", "python", (), {"SOME_SWITCH": "1"}))
    monkeypatch.setenv("SOME_SWITCH", "1")
    stamp.is_own(cell, is_empty=True)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert stamp.is_own(cell, is_empty=False), "the compile step sees no device"
    for name in ("SOME_SWITCH", "FLAGTREE_ANYTHING"):
        with monkeypatch.context() as changed:
            changed.setenv(name, "2")
            assert not stamp.is_own(cell, is_empty=False)


def test_a_directory_that_the_runner_did_not_give_is_never_stamped(own, monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "elsewhere" / "triton"))
    assert not stamp.is_own(make_cell(), is_empty=True)
    monkeypatch.delenv("CALIBER_CACHE_STAMP")
    assert not stamp.is_own(make_cell(), is_empty=True)
    assert not own.exists()
