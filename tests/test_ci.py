"""ci: which operators fail a CI job, and the one exit code; what was not compared never passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness import ci
from harness.__main__ import main
from harness.ci import Policy, PolicyError
from harness.findings import OpLine, Verdict
from harness.records import ExitCode, Outcome
from harness.report import assemble
from harness.verdict import judge_op
from tests import evidence, finished

JUDGE = evidence.JUDGE
DEFAULT = Policy()


def report(**effects):
    """One op per name, B slower by so many per cent."""
    cells = {op: finished.op_cells(op, effect) for op, effect in effects.items()}
    return assemble("demo", cells, {op: judge_op(own, evidence.gate(op=op), JUDGE) for op, own in cells.items()}, JUDGE)


def saying(verdict, op="mm"):
    """A report whose only op has this verdict."""
    found = report(**{op: 5.0})
    judged = replace(found.ops[op], verdict=verdict)
    line = OpLine(op, verdict, (), 0.001)
    return replace(found, ops={op: judged}, verdict=replace(found.verdict, ops=(line,)))


def ruled(found, policy=DEFAULT):
    rulings = ci.rule(found, policy)
    return [(ruling.op, ruling.ruling) for ruling in rulings], ci.exit_code(rulings)


def test_a_claimed_slowdown_fails_beyond_the_limit_only():
    found = report(mm=3.0, add=0.0, gelu=-3.0)
    assert ruled(found) == ([("mm", "fail"), ("add", "pass"), ("gelu", "pass")], ExitCode.FAILED)
    assert ruled(found, Policy(max_slower_pct=2.9))[1] is ExitCode.FAILED
    assert ruled(found, Policy(max_slower_pct=3.1)) == (
        [("mm", "pass"), ("add", "pass"), ("gelu", "pass")], ExitCode.DONE,
    )  # fmt: skip


def test_a_failing_op_is_printed_with_its_numbers_and_the_rule():
    text = ci.table(ci.rule(report(mm=3.0), Policy(1.0)), Policy(1.0))
    assert text.startswith("caliber gate (SLOWER by more than 1 %): 1 ops, 0 pass, 1 fail, 0 error, 0 undecided\n")
    assert "fail      mm: SLOWER: B 3.0 % slower [+2.9" in text and "limit 1 %" in text


@pytest.mark.parametrize(
    ("verdict", "ruling", "code"),
    [
        (Verdict.FASTER, "pass", ExitCode.DONE),
        (Verdict.SLOWER, "fail", ExitCode.FAILED),
        (Verdict.SAME, "pass", ExitCode.DONE),
        (Verdict.UNRESOLVED, "undecided", ExitCode.DONE),
        (Verdict.SIGN_UNSTABLE, "undecided", ExitCode.DONE),
        (Verdict.NO_CODE_CHANGE, "pass", ExitCode.DONE),
        (Verdict.IR_DIFF_SAME_CODE, "pass", ExitCode.DONE),
        (Verdict.IR_UNKNOWN, "undecided", ExitCode.DONE),
        (Verdict.NOT_COMPARABLE, "error", ExitCode.CALIBER),
        (Verdict.MIXED_TIMER, "error", ExitCode.CALIBER),
        (Verdict.INCOMPLETE, "error", ExitCode.INCOMPLETE),
        (Verdict.POISONED, "error", ExitCode.CALIBER),
        (Verdict.FAILED, "error", ExitCode.FAILED),
        (Verdict.CLOCK_CONFOUNDED, "undecided", ExitCode.DONE),
    ],
)
def test_every_verdict_has_a_ruling(verdict, ruling, code):
    assert ruled(saying(verdict)) == ([("mm", ruling)], code)


def test_every_verdict_is_in_the_test_above():
    (mark,) = [mark for mark in test_every_verdict_has_a_ruling.pytestmark if mark.name == "parametrize"]
    assert [case[0] for case in mark.args[1]] == list(Verdict)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_what_is_named_fails(verdict):
    rulings, code = ruled(saying(verdict), Policy(fail_on=(verdict,)))
    assert code is not ExitCode.DONE
    assert rulings[0][1] in ("fail", "error")


def test_the_verdict_after_the_correction_across_ops_counts():
    found = saying(Verdict.SLOWER)
    corrected = OpLine("mm", Verdict.UNRESOLVED, (), 0.2)
    found = replace(found, verdict=replace(found.verdict, ops=(corrected,)))
    assert ruled(found) == ([("mm", "undecided")], ExitCode.DONE)


def test_a_slowdown_without_a_number_is_beyond_every_limit():
    found = saying(Verdict.SLOWER)
    found = replace(found, ops={"mm": replace(found.ops["mm"], estimate=None)})
    assert ruled(found, Policy(max_slower_pct=99.0))[1] is ExitCode.FAILED


def test_nothing_to_judge_is_never_a_pass():
    assert ruled(assemble("demo", {}, {}, JUDGE)) == ([], ExitCode.INCOMPLETE)
    assert "never a pass" in ci.table((), Policy())


def test_what_was_not_compared_outranks_what_is_missing_and_what_failed():
    codes = [ExitCode.FAILED, ExitCode.INCOMPLETE, ExitCode.CALIBER]
    made = [ci.OpRuling(str(code), Verdict.SAME, "error", "", code) for code in codes]
    assert ci.exit_code(made) is ExitCode.CALIBER
    assert ci.exit_code(made[:2]) is ExitCode.INCOMPLETE
    assert ci.exit_code(made[:1]) is ExitCode.FAILED


@pytest.mark.parametrize(
    ("text", "value"), [("1%", 1.0), ("1 %", 1.0), ("1", 1.0), ("0.5%", 0.5), ("0.01", 0.01), (" 2.25% ", 2.25)]
)
def test_a_limit_is_in_per_cent(text, value):
    assert ci.limit(text) == value


@pytest.mark.parametrize("text", ["", "-1%", "1,5%", "one", "1e-2", "1%%", "nan", ".5", "%"])
def test_a_limit_that_is_no_percentage_is_refused(text):
    with pytest.raises(PolicyError, match="is no percentage; write 1% or 0.5%"):
        ci.limit(text)


def test_verdict_names_are_checked_against_the_verdicts():
    assert ci.verdicts("UNRESOLVED, SIGN_UNSTABLE,UNRESOLVED") == (Verdict.UNRESOLVED, Verdict.SIGN_UNSTABLE)
    for text in ("UNRESOLVD", "unresolved", "SLOWER,", ""):
        with pytest.raises(PolicyError, match="is no verdict; the verdicts are FASTER, SLOWER"):
            ci.verdicts(text)


def test_the_command_reads_a_campaign_and_writes_none_of_it(tmp_path, capsys):
    directory = finished.reported(tmp_path / "demo")
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    assert main(["gate", str(directory), "--max-slower", "1%"]) == ExitCode.FAILED
    assert "fail      mm: SLOWER: B 5.0 % slower" in capsys.readouterr().out
    assert main(["gate", str(directory), "--max-slower", "6%"]) == ExitCode.DONE
    assert main(["gate", str(directory), "--max-slower", "6%", "--fail-on", "SAME,UNRESOLVED"]) == ExitCode.FAILED
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before
    assert main(["gate", str(directory), "--max-slower", "0.01x"]) == ExitCode.FAILED
    assert "is no percentage" in capsys.readouterr().err


def test_an_unfinished_campaign_is_exit_5_and_a_foreign_caliber_exit_4(tmp_path):
    missing = evidence.change(finished.op_cells("mm"), "r6_B", status=None)
    assert main(["gate", str(finished.reported(tmp_path / "a", mm=missing))]) == ExitCode.INCOMPLETE
    other = evidence.change_identity(finished.op_cells("mm"), "r2_B", driver="571")
    assert main(["gate", str(finished.reported(tmp_path / "b", mm=other))]) == ExitCode.CALIBER
    broken = evidence.change_status(finished.op_cells("mm"), "r2_B", outcome=Outcome.OP_FAILED)
    assert main(["gate", str(finished.reported(tmp_path / "c", mm=broken))]) == ExitCode.FAILED
