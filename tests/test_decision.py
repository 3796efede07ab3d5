"""Decision: what a timer can resolve, and what an effect must clear."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.findings import Verdict, codes
from harness.margin import Bar, bar, timer_quantum
from harness.rules import Case, decide, rules
from harness.statistics import estimate
from tests.evidence import JUDGE

ORDER = [1, -1, -1, 1, 1, -1]


def test_the_timer_quantum_is_read_off_the_grid():
    ticks = np.random.default_rng(9).integers(8, 14, (6, 6)) * 1.024e-3
    assert timer_quantum(ticks.astype(np.float32).astype(float).tolist()) == pytest.approx(1.024e-3, rel=1e-3)
    assert timer_quantum(np.random.default_rng(9).normal(0.01, 1e-4, (2, 6)).tolist()) == 0.0


def test_constant_samples_say_nothing_about_the_timer():
    assert timer_quantum([[115.0] * 5, [78.8] * 5]) == 0.0
    assert timer_quantum([]) == 0.0
    assert timer_quantum([[0.5]]) == 0.0


def test_the_margin_is_the_users_or_two_ticks_where_those_are_larger():
    assert bar(JUDGE, 0.0).margin == pytest.approx(math.log(1.005))
    assert bar(JUDGE, 0.1).margin == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("deltas", "p", "verdict", "first"),
    [
        ([0.020, 0.021, 0.019, 0.020, 0.021, 0.019], 0.001, Verdict.SLOWER, "EFFECT"),
        ([-0.020, -0.021, -0.019, -0.020, -0.021, -0.019], 0.001, Verdict.FASTER, "EFFECT"),
        ([0.020, 0.021, 0.019, 0.020, 0.021, 0.019], 0.06, Verdict.UNRESOLVED, "EFFECT"),
        ([0.001, -0.001, 0.0, 0.001, -0.001, 0.0], 1.0, Verdict.SAME, "EQUIVALENT"),
        ([0.0049, 0.0055, 0.0051, 0.0049, 0.0045, 0.0047], 0.001, Verdict.UNRESOLVED, "BELOW_MARGIN"),
        ([0.1, -0.09, 0.08, -0.1, 0.0, 0.02], 0.9, Verdict.SIGN_UNSTABLE, "DIRECTION_NOT_RESOLVED"),
        ([0.1, 0.0001, 0.08, 0.002, 0.0003, 0.0], 0.2, Verdict.UNRESOLVED, "EFFECT"),
    ],
)
def test_each_verdict_has_its_condition(deltas, p, verdict, first):
    found, reasons = decide(estimate(deltas, ORDER), np.array(deltas), p, Bar(0.005, 0.0, 0.05))
    assert (found, codes(reasons)[0]) == (verdict, first)


def test_sign_flips_within_a_tick_of_the_timer_are_no_flips():
    deltas = [0.1, -0.001, 0.08, 0.002, 0.0003, 0.0]
    assert decide(estimate(deltas, ORDER), np.array(deltas), 0.2, Bar(0.005, 0.0, 0.05))[0] is Verdict.SIGN_UNSTABLE
    assert decide(estimate(deltas, ORDER), np.array(deltas), 0.2, Bar(0.005, 0.002, 0.05))[0] is Verdict.UNRESOLVED


def test_shapes_that_lean_on_each_other_claim_nothing_unless_their_family_does():
    deltas = np.array([0.020, 0.021, 0.019, 0.020, 0.021, 0.019])
    found, limit = estimate(deltas, ORDER), Bar(0.005, 0.0, 0.05)
    assert decide(found, deltas, 0.001, limit, family_p=0.01)[0] is Verdict.SLOWER
    verdict, reasons = decide(found, deltas, 0.001, limit, family_p=0.12)
    assert (verdict, codes(reasons)) == (Verdict.UNRESOLVED, ("FAMILY", "POWER"))
    assert "family p 0.12, not below 0.05" in reasons[0].message


def test_the_rules_are_asked_in_order_and_the_first_that_holds_decides():
    deltas = np.array([0.020, 0.021, 0.019, 0.020, 0.021, 0.019])
    asked = list(rules(Case(estimate(deltas, ORDER), deltas, 0.001, Bar(0.005, 0.0, 0.05))))
    assert [rule.holds for rule in asked] == [False, False, True, False, True, True, False, True]
    assert asked[2].verdict is decide(estimate(deltas, ORDER), deltas, 0.001, Bar(0.005, 0.0, 0.05))[0]
    alone = list(rules(Case(estimate([0.1], [1]), np.array([0.1]), None, Bar(0.005, 0.0, 0.05))))
    assert [(rule.holds, rule.verdict) for rule in alone] == [(True, Verdict.UNRESOLVED)]


def test_below_the_margin_the_rounds_that_would_show_sameness_are_named():
    deltas = np.array([0.0046, 0.0047, 0.0049, 0.0049, 0.0048, 0.0050])
    limit = Bar(0.00485, 0.0, 0.05)
    verdict, reasons = decide(estimate(deltas, ORDER), deltas, 0.001, limit)
    assert (verdict, codes(reasons)) == (Verdict.UNRESOLVED, ("BELOW_MARGIN", "POWER"))
    assert "to show it within the margin takes " in reasons[1].message
    assert reasons[1].message.split("takes ")[1].startswith(("8", "1", "2", "3", "4", "5", "6", "7", "more"))


def test_the_rounds_needed_are_those_at_the_threshold_of_the_family():
    deltas = np.array([0.012, -0.004, 0.010, 0.002, 0.004, 0.012])
    found, limit = estimate(deltas, ORDER), Bar(0.005, 0.0, 0.05)
    alone = decide(found, deltas, found.p, limit)[1][-1].message
    among = decide(found, deltas, 1.0, limit, threshold=0.05 / 42)[1][-1].message
    assert "family" not in alone
    assert "at p < 0.001, as its family asks, takes" in among
    assert int(among.split("takes ")[1].split()[0]) > int(alone.split("takes ")[1].split()[0])


def test_an_unresolved_verdict_names_the_rounds_that_would_resolve_it():
    deltas = [0.012, -0.004, 0.010, 0.002, 0.004, 0.012]
    _, reasons = decide(estimate(deltas, ORDER), np.array(deltas), 0.08, Bar(0.005, 0.0, 0.05))
    power = next(reason for reason in reasons if reason.code == "POWER")
    assert power.message.startswith("6 rounds see ")
    assert power.message.endswith("B 0.60 % slower takes 14 rounds")
