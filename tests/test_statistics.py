"""Statistics: known answers, edge cases with defined answers, and seeded coverage checks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from harness import codec
from harness.power import detectable, rounds_equivalent, rounds_needed
from harness.statistics import (
    Estimate,
    adjusted,
    design_effect,
    equivalent,
    estimate,
    estimates,
    fit,
    flips,
    moderate,
    percent,
    side_noise,
    words,
)

BALANCED = [1, -1, -1, 1, 1, -1]


def by_least_squares(deltas, order):
    """delta, slot, standard error of delta, df: the textbook way."""
    design = np.column_stack([np.ones(len(order)), order])
    solution = np.linalg.lstsq(design, np.array(deltas), rcond=None)[0]
    residuals = np.array(deltas) - design @ solution
    df = len(order) - 2
    covariance = np.linalg.inv(design.T @ design) * (residuals @ residuals) / df
    return solution[0], solution[1], math.sqrt(covariance[0, 0]), df


@pytest.mark.parametrize("order", [BALANCED, [1, -1, 1, -1, 1], [1, 1, -1, 1], [1, -1, 1]])
def test_the_estimate_is_the_least_squares_fit_whatever_the_balance(order):
    deltas = list(np.random.default_rng(1).normal(0.01, 0.01, len(order)))
    found = estimate(deltas, order)
    delta, slot, se, df = by_least_squares(deltas, order)
    assert (found.delta, found.slot, found.se) == pytest.approx((delta, slot, se))
    assert found.df == df
    half = stats.t.ppf(0.975, df) * se
    assert (found.low, found.high) == pytest.approx((delta - half, delta + half))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(delta) / se, df))


def test_a_slot_penalty_leaks_neither_into_the_effect_nor_into_its_spread():
    quiet = [0.004, 0.006, 0.005, 0.005, 0.006, 0.004]
    shifted = [d + 0.01 * o for d, o in zip(quiet, BALANCED, strict=True)]
    plain, penal = estimate(quiet, BALANCED), estimate(shifted, BALANCED)
    assert penal.delta == pytest.approx(plain.delta)
    assert penal.sd == pytest.approx(plain.sd)
    assert penal.slot == pytest.approx(plain.slot + 0.01)


def test_with_odd_rounds_the_fit_is_unbiased_where_the_plain_mean_is_not():
    order = [1, -1, 1, -1, 1]
    deltas = [0.012 * o for o in order]  # no effect, 1.2 % slot penalty
    assert np.mean(deltas) == pytest.approx(0.0024)  # the bias measured on alternating odd campaigns
    assert estimate(deltas, order).delta == pytest.approx(0.0, abs=1e-12)


def test_one_order_only_cannot_tell_the_slot():
    found = estimate([0.01, 0.02, 0.03, 0.02], [1, 1, 1, 1])
    assert found.slot is None
    assert found.delta == pytest.approx(0.02)
    assert found.df == 3


@pytest.mark.parametrize(("rounds", "df"), [(1, None), (2, None), (3, 1), (4, 2), (5, 3)])
def test_few_rounds_have_a_defined_answer(rounds, df):
    found = estimate([0.01, 0.02, 0.015, 0.012, 0.011][:rounds], BALANCED[:rounds])
    assert found.df == df
    assert (found.p is None) == (df is None)
    assert found.range_confidence == 1 - 2 ** (1 - rounds)
    assert codec.loads(Estimate, codec.dumps(found), "estimate") == found


@pytest.mark.parametrize(("value", "p"), [(0.0, 1.0), (0.02, 0.0), (math.log(78.8) - math.log(115), 0.0)])
def test_constant_samples_are_exact(value, p):
    found = estimate([value] * 6, BALANCED)
    assert (found.delta, found.sd, found.se, found.p) == (pytest.approx(value), 0.0, 0.0, p)
    assert (found.low, found.high) == (found.delta, found.delta)
    assert found.same_sign == 6
    assert equivalent(found, 0.005) == (value == 0.0)
    assert codec.loads(Estimate, codec.dumps(found), "estimate") == found


def test_constant_shapes_among_noisy_ones_stay_finite():
    deltas = np.random.default_rng(2).normal(0, 0.01, (20, 6))
    deltas[3], deltas[4] = 0.0, 0.02
    for found in estimates(deltas, np.array(BALANCED)):
        assert codec.loads(Estimate, codec.dumps(found), "estimate") == found
    mostly_constant = np.where(np.arange(20)[:, None] < 15, 0.01, deltas)
    assert [found.p for found in estimates(mostly_constant, np.array(BALANCED))][:15] == [0.0] * 15


@pytest.mark.parametrize("seed", range(20))
def test_swapping_the_sides_mirrors_every_number(seed):
    rng = np.random.default_rng(seed)
    rounds = int(rng.integers(1, 11))
    order = rng.choice([-1, 1], rounds)
    deltas = rng.normal(0.01, 0.02, rounds)
    one, other = estimate(deltas, order), estimate(-deltas, -order)
    assert other.delta == pytest.approx(-one.delta)
    assert other.hodges_lehmann == pytest.approx(-one.hodges_lehmann)
    assert (other.smallest, other.largest) == (-one.largest, -one.smallest)
    assert (other.p, other.same_sign) == (pytest.approx(one.p), one.same_sign)
    if one.low is not None:
        assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    if one.slot is not None:
        assert other.slot == pytest.approx(one.slot)  # running second costs the same, whoever does it


def test_ties_and_zeros_are_counted_as_neither_sign():
    found = estimate([0.01, 0.01, 0.0, 0.01, 0.0, -0.01], BALANCED)
    assert (found.same_sign, found.rounds) == (3, 6)
    assert found.hodges_lehmann == pytest.approx(0.005)
    assert 0.0 < found.p < 1.0
    level = estimate([0.01, -0.01, 0.01, -0.01], [1, 1, -1, -1])
    assert (level.delta, level.same_sign, level.p) == (0.0, 0, 1.0)


@pytest.mark.parametrize("order", [BALANCED, [1, 1, 1, 1, -1, 1], [1, -1, 1, -1, 1]])
def test_a_value_far_from_the_others_is_kept(order):
    """No outlier deletion on N <= 10: what looks like one may be a mode."""
    deltas = [0.001, -0.001, 0.002, 0.0, -0.002, 0.5][: len(order)]
    found = estimate(deltas, order)
    assert found.largest == max(deltas)
    assert found.delta == pytest.approx(by_least_squares(deltas, order)[0])
    residuals = fit(np.array([deltas]), np.array(order)).residuals[0]
    assert found.sd == pytest.approx(math.sqrt(sum(residuals**2) / found.df))


def test_swapping_the_sides_of_many_shapes_mirrors_every_moderated_number():
    rng = np.random.default_rng(21)
    order = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    deltas = rng.normal(0.01, 0.02, (15, 5)) * rng.choice([0.1, 1.0], (15, 1))
    deltas[3] = 0.02
    for one, other in zip(estimates(deltas, order), estimates(-deltas, -order), strict=True):
        assert (other.delta, other.low, other.high) == pytest.approx((-one.delta, -one.high, -one.low))
        assert (other.p, other.df, other.sd, other.sd_used) == pytest.approx((one.p, one.df, one.sd, one.sd_used))
        assert (other.slot, other.mde80, other.same_sign) == (pytest.approx(one.slot), one.mde80, one.same_sign)


def test_hodges_lehmann_is_the_median_of_walsh_averages():
    assert estimate([1.0, 2.0, 10.0], [1, -1, 1]).hodges_lehmann == pytest.approx(3.75)


def test_same_sign_counts_the_rounds_that_agree_with_the_estimate():
    assert estimate([0.01, 0.02, -0.001, 0.03], [1, -1, 1, -1]).same_sign == 3


def test_flips_count_only_beyond_the_timers_resolution():
    assert flips([0.01, -0.01], 0.0)
    assert not flips([0.01, -0.01], 0.02)
    assert not flips([0.01, 0.02], 0.0)


def test_moderation_recovers_the_prior_it_was_drawn_from():
    rng = np.random.default_rng(3)
    sd = np.sqrt(0.01**2 * 8 / rng.chisquare(8, 4000))
    model = fit(rng.normal(0, sd[:, None], (4000, 6)), np.array(BALANCED))
    _, df = moderate(model)
    assert df - model.df == pytest.approx(8, rel=0.25)


def test_moderated_p_values_are_uniform_when_nothing_differs():
    rng = np.random.default_rng(4)
    below = [
        found.p < 0.05
        for _ in range(40)
        for found in estimates(rng.normal(0, np.sqrt(1 / rng.gamma(3, size=(42, 1))), (42, 6)), np.array(BALANCED))
    ]
    assert np.mean(below) == pytest.approx(0.05, abs=0.015)


def test_the_cautious_prior_alone_keeps_false_claims_near_nominal():
    """Over 42 shapes with Benjamini-Hochberg; the textbook's prior gives 13 % at four rounds."""
    rng = np.random.default_rng(11)
    claimed = []
    for _ in range(800):
        sd = np.sqrt(4 / rng.chisquare(4, (42, 1)))
        model = fit(rng.normal(0, sd, (42, 4)), np.array([1, -1, -1, 1]))
        variance, df = moderate(model)
        p = 2 * stats.t.sf(np.abs(model.delta) / np.sqrt(variance * model.leverage), df)
        claimed.append(min(adjusted(list(p))) < 0.05)
    assert np.mean(claimed) < 0.08


def test_shapes_that_move_as_one_lend_each_other_no_certainty():
    """Independent shapes are limma's assumption; a jolt that a whole process shares breaks it."""
    rng = np.random.default_rng(5)
    capped, uncapped = [], []
    for _ in range(1000):
        model = fit(rng.normal(0, 0.01, (1, 6)) + rng.normal(0, 0.001, (42, 6)), np.array(BALANCED))
        variance, df = moderate(model)
        t = abs(model.delta[0]) / math.sqrt(variance[0] * model.leverage)
        capped.append(2 * stats.t.sf(t, df) < 0.05)
        uncapped.append(2 * stats.t.sf(t, 42 * model.df) < 0.05)
    assert np.mean(uncapped) > 0.065
    assert np.mean(capped) < 0.05


def test_design_effect_spans_from_one_to_the_number_of_shapes():
    rng = np.random.default_rng(6)
    model = fit(rng.normal(0, 1, (400, 6)), np.array(BALANCED))
    assert design_effect(model.residuals) < 4
    assert design_effect(np.tile(model.residuals[:1], (42, 1))) == pytest.approx(42)
    assert design_effect(np.zeros((5, 6))) == 1.0


def test_few_shapes_keep_their_own_variance():
    deltas = np.random.default_rng(7).normal(0, 0.01, (9, 6))
    assert all(found.sd == found.sd_used and found.df == 4 for found in estimates(deltas, np.array(BALANCED)))


def test_benjamini_hochberg_skips_what_has_no_p():
    assert adjusted([0.01, None, 0.02, 0.03, 0.04, 0.05]) == [
        pytest.approx(0.05), None, *[pytest.approx(0.05)] * 4,
    ]  # fmt: skip
    assert adjusted([None]) == [None]
    assert adjusted([]) == []


def test_equivalence_is_the_90_percent_interval_within_the_margin():
    found = estimate([0.001, -0.001, 0.0005, -0.0005, 0.0, 0.0002], BALANCED)
    half = stats.t.ppf(0.95, found.df) * found.se
    assert equivalent(found, abs(found.delta) + half + 1e-9)
    assert not equivalent(found, abs(found.delta) + half - 1e-9)


def test_no_dispersion_is_never_equivalence():
    assert not equivalent(estimate([0.0], [1]), 0.5)
    assert not equivalent(estimate([0.0, 0.0], [1, -1]), 0.5)


@pytest.mark.parametrize(("rounds", "mde"), [(3, 3.26), (4, 2.13), (5, 1.68), (6, 1.43), (8, 1.16), (10, 1.00)])
def test_the_detectable_effect_agrees_with_the_simulated_table(rounds, mde):
    assert detectable(rounds - 1) / math.sqrt(rounds) == pytest.approx(mde, rel=0.02)


def test_rounds_needed_is_the_first_even_number_that_detects_the_target():
    needed = rounds_needed(0.01, 0.01)
    assert needed is not None and needed % 2 == 0
    assert detectable(needed - 2) * 0.01 / math.sqrt(needed) <= 0.01
    assert detectable(needed - 4) * 0.01 / math.sqrt(needed - 2) > 0.01
    assert rounds_needed(0.0, 0.01) == 4
    assert rounds_needed(1.0, 0.001) is None


def test_rounds_needed_for_equivalence_are_those_whose_interval_fits():
    needed = rounds_equivalent(0.004, 0.003)
    assert stats.t.ppf(0.95, needed - 2) * 0.004 / math.sqrt(needed) < 0.003
    assert stats.t.ppf(0.95, needed - 4) * 0.004 / math.sqrt(needed - 2) >= 0.003
    assert rounds_equivalent(1.0, 0.001) is None


def test_a_stricter_threshold_takes_more_rounds_and_lent_certainty_fewer():
    assert rounds_needed(0.01, 0.01, level=0.001) > rounds_needed(0.01, 0.01)
    assert rounds_needed(0.01, 0.02, borrowed=20) < rounds_needed(0.01, 0.02)


def test_side_noise_is_free_of_slot_and_drift():
    order, rounds = np.array(BALANCED, dtype=float), np.arange(1.0, 7.0)
    drifting = 0.5 + 0.01 * order + 0.003 * rounds
    assert side_noise(drifting, order, rounds) == 0.0
    noise = np.random.default_rng(8).normal(0, 0.01, 6)
    assert side_noise(drifting + noise, order, rounds) == pytest.approx(side_noise(noise, order, rounds))
    assert side_noise(drifting[:3], order[:3], rounds[:3]) is None
    assert side_noise(drifting[:1], order[:1], rounds[:1]) is None


def test_side_noise_with_one_order_only_still_counts_its_degrees_of_freedom():
    levels = np.array([1.0, 1.1, 0.9, 1.0])
    slope_only = np.polyfit(range(4), levels, 1, full=True)[1][0]
    assert side_noise(levels, np.ones(4), np.arange(4.0)) == pytest.approx(math.sqrt(slope_only / 2))


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        (math.log(1.031), "B 3.1 % slower"),
        (math.log(0.8), "B 20.0 % faster"),
        (math.log(1.0042), "B 0.42 % slower"),
        (math.log(0.99), "B 1.0 % faster"),
        (0.0, "B as fast as A"),
        (-1e-6, "B as fast as A"),
    ],
)
def test_direction_is_a_sign_and_a_word(delta, text):
    assert words(delta) == text


def test_percent_is_of_the_latency_of_a():
    assert percent(math.log(3.0 / 2.0)) == pytest.approx(50.0)
