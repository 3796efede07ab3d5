"""seal: a campaign goes on with what it was started with, or not at all."""

import dataclasses

import pytest

from harness import seal
from harness.records import ExitCode


def current(**changes):
    return dataclasses.replace(seal.new("c", "sha256:m", "sha256:c", "sha256:p"), **changes)


def test_an_unsealed_campaign_is_told_from_a_sealed_one(tmp_path):
    assert seal.check(tmp_path, current()) is False
    seal.write(tmp_path, current(), {})
    assert seal.check(tmp_path, current()) is True


@pytest.mark.parametrize("axis", seal.AXES)
def test_a_differing_axis_is_refused_with_both_values(tmp_path, axis):
    seal.write(tmp_path, current(), {})
    other = 99 if axis == "epoch" else "sha256:other"
    with pytest.raises(seal.SealError, match=rf"!!! \[caliber\] seal of .*{axis}: sealed .*, now {other}") as caught:
        seal.check(tmp_path, current(**{axis: other}))
    assert caught.value.code is ExitCode.CALIBER


def test_the_time_of_sealing_is_not_an_axis(tmp_path):
    seal.write(tmp_path, current(), {})
    assert seal.check(tmp_path, current(created_at="later"))


def test_the_frozen_copy_has_the_digest_that_was_sealed(tmp_path):
    seal.write(tmp_path, current(), {})
    assert seal.frozen_digest(tmp_path) == seal.harness_digest()


def test_an_edit_in_the_frozen_copy_changes_its_digest(tmp_path):
    seal.write(tmp_path, current(), {})
    with open(tmp_path / "frozen/harness/records.py", "a", encoding="utf-8") as stream:
        stream.write("# edited\n")
    assert seal.frozen_digest(tmp_path) != seal.harness_digest()


def test_the_frozen_copy_holds_the_target_side_and_nothing_of_the_orchestrator(tmp_path):
    seal.freeze(tmp_path)
    names = {path.relative_to(tmp_path / "frozen").as_posix() for path in (tmp_path / "frozen").rglob("*.py")}
    assert {"harness/records.py", "harness/codec.py", "harness/stages.py", "harness/plugins/timing.py"} <= names
    assert not {name for name in names if name.startswith(("harness/cell", "harness/backends", "harness/verdict"))}
