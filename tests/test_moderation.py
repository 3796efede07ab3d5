"""Moderation: what shapes lend each other, and the family test that keeps it honest."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from harness import moderation
from harness.moderation import design_effect, family_p, shrink, trigamma_inverse
from harness.statistics import adjusted, fit, moderate

ORDER = np.array([1.0, -1.0, -1.0, 1.0])
LONG = np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])


def smallest_adjusted(deltas, order):
    """The statistic of the family test, the long way: one data set, the functions that judge."""
    model = fit(deltas, order)
    variance, df = moderate(model)
    p = 2 * stats.t.sf(np.abs(model.delta) / np.sqrt(variance * model.leverage), df)
    return min(adjusted(list(p)))


def unequal(rng, shapes, rounds):
    """Nothing differs; one shape in five is five times as noisy."""
    return rng.normal(0, np.where(rng.random((shapes, 1)) < 0.2, 5.0, 1.0), (shapes, rounds))


def test_the_statistic_of_the_family_is_the_smallest_adjusted_p_value_of_its_shapes():
    deltas = unequal(np.random.default_rng(1), 20, 6)
    ones = np.ones(6) - LONG.mean() * LONG
    free = deltas - np.outer(deltas @ LONG, LONG) / 6
    (found,) = moderation._smallest_adjusted(free, (ones / np.linalg.norm(ones))[None, :], 4.0)
    assert found == pytest.approx(smallest_adjusted(deltas, LONG))


@pytest.mark.parametrize(("shapes", "order"), [(12, ORDER), (20, LONG)])
def test_an_op_in_which_nothing_differs_has_a_significant_family_in_five_percent_of_cases(shapes, order):
    """Whatever the prior, here one it does not model. Without the test some 8 % of such ops make a claim."""
    rng = np.random.default_rng(12)
    found = [family_p(unequal(rng, shapes, len(order)) + 3 * order, order) for _ in range(400)]
    assert np.mean(np.array(found) < 0.05) < 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 400)
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_the_family_test_is_exact_for_shapes_that_move_as_one():
    rng = np.random.default_rng(13)
    jolted = [family_p(rng.normal(0, 1, (1, 6)) + rng.normal(0, 0.3, (20, 6)), LONG) for _ in range(400)]
    assert np.mean(np.array(jolted) < 0.05) < 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 400)


def test_a_family_with_an_effect_is_significant_even_at_four_rounds():
    deltas = unequal(np.random.default_rng(14), 42, 4)
    deltas[:10] += 10.0
    assert family_p(deltas, ORDER) < 0.05


def test_swapping_the_sides_changes_no_family():
    deltas = unequal(np.random.default_rng(15), 15, 6)
    assert family_p(-deltas, -LONG) == family_p(deltas, LONG)


def test_the_same_data_have_the_same_family_p_always():
    deltas = unequal(np.random.default_rng(16), 15, 6)
    np.random.seed(3)
    assert family_p(deltas, LONG) == family_p(deltas.copy(), LONG.copy())


def test_a_slot_effect_is_no_part_of_the_family():
    deltas = unequal(np.random.default_rng(17), 15, 6)
    assert family_p(deltas + 50 * LONG, LONG) == pytest.approx(family_p(deltas, LONG), abs=1e-3)


@pytest.mark.parametrize(
    ("deltas", "order"),
    [
        (np.ones((9, 6)), LONG),  # few shapes borrow nothing
        (np.ones((12, 2)), np.array([1.0, -1.0])),  # no degree of freedom
        (np.ones((12, 4)), np.ones(4)),  # one order
        (np.full((12, 6), 0.02), LONG),  # constant samples are exact
    ],
)
def test_where_nothing_is_borrowed_no_family_is_asked(deltas, order):
    assert family_p(deltas, order) is None


def test_shrinking_many_data_sets_at_once_is_shrinking_each():
    variance = np.random.default_rng(18).chisquare(3, (15, 4))
    design = np.array([1.0, 2.0, 5.0, 15.0])
    together, total = shrink(variance, 4.0, design)
    for index in range(4):
        alone, df = shrink(variance[:, index], 4.0, design[index])
        assert together[:, index] == pytest.approx(alone)
        assert total[index] == pytest.approx(df)


def test_equal_variances_are_pooled_and_the_effective_shapes_cap_what_is_borrowed():
    variance = np.full(20, 2.0)
    shrunken, df = shrink(variance, 4.0, 1.0)
    assert np.ptp(shrunken) == 0.0
    assert df == 80.0
    assert shrink(variance, 4.0, 20.0)[1] == 4.0


def test_trigamma_inverse_inverts_over_the_range_a_prior_can_have():
    x = np.logspace(-3, 6, 30)
    assert trigamma_inverse(special.polygamma(1, x)) == pytest.approx(x, rel=1e-6)


def test_the_design_effect_within_the_family_test_is_that_of_the_residuals():
    deltas = unequal(np.random.default_rng(19), 15, 6)
    ones = np.ones(6) / math.sqrt(6)
    free = deltas - np.outer(deltas @ LONG, LONG) / 6
    along = free @ ones[:, None]
    squares = np.sum(free**2, axis=1)[:, None] - along**2
    (found,) = moderation._design_effects(free, ones[None, :], along, squares)
    assert found == pytest.approx(design_effect(fit(deltas, LONG).residuals))
