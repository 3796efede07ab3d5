"""records: the nouns keep the promises that other modules lean on."""

from dataclasses import dataclass

import pytest

from harness.records import Outcome, Role, RowKey, identity_fields, require_roles


def test_a_field_without_a_role_does_not_compile():
    with pytest.raises(TypeError, match="Broken.speed declares no role"):

        @require_roles
        @dataclass(frozen=True)
        class Broken:
            speed: int


def test_measurements_and_times_are_never_compared():
    assert {"host", "pid", "started_at"} <= set(identity_fields(Role.EVIDENCE))
    assert {"timer", "l2", "tuner_cache", "device_model", "torch"} <= set(identity_fields(Role.COMPARED))
    builds = {"triton", "triton_digest", "compiler_commit"}
    assert set(identity_fields(Role.AXIS)) == {"switch", "executable", "pythonpath"} | builds


def test_only_outcomes_about_the_operator_are_terminal():
    assert {item for item in Outcome if item.terminal} == {
        Outcome.MEASURED, Outcome.RECORDED, Outcome.OP_FAILED, Outcome.SKIPPED,
    }  # fmt: skip


def test_a_row_key_reads_well():
    assert str(RowKey("mm", "float16", "[[4,4]]", 0, "")) == "mm float16 [[4,4]]"
    assert str(RowKey("mm", "float16", "[[4,4]]", 1, "k(B=1)")) == "mm float16 [[4,4]] #1 k(B=1)"
