"""closeness: what two correct results may differ by, and what they may not."""

import math

import pytest
import torch

from harness.plugins import closeness
from harness.plugins.closeness import Closeness, Incomparable, compare, tensors


def wrong(found, wanted, longest=1) -> int:
    return compare((found,), (wanted,), longest).wrong


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_next_representable_number_is_no_error_and_a_tenth_is_one(dtype):
    wanted = torch.linspace(1, 2, 64).to(dtype)
    assert wrong(torch.nextafter(wanted, wanted * 4), wanted) == 0
    assert wrong(wanted * 1.1, wanted) == 64


def test_terms_that_cancel_may_leave_what_their_number_explains():
    wanted = torch.cat([torch.full((999,), 10.0), torch.zeros(1)])
    found = wanted + 0.03
    assert wrong(found, wanted, longest=1) == 1000
    assert wrong(found, wanted, longest=1024) == 0
    assert wrong(wanted + 0.3, wanted, longest=10**9) == 1000, "a long side of an elementwise operator excuses little"


def test_one_element_in_many_is_found_across_chunks(monkeypatch):
    monkeypatch.setattr(closeness, "CHUNK", 16)
    wanted = torch.ones(7, 9)
    found = wanted.clone()
    found[6, 8] = 1.5
    assert compare((found,), (wanted,), 1) == Closeness(63, 1, 0.5, 0.5)


def test_nan_and_infinity_are_equal_to_themselves_only():
    special = torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    assert wrong(special, special.clone()) == 0
    found = compare((torch.tensor([1.0, 1.0, math.inf, math.nan]),), (special,), 1)
    assert (found.wrong, found.max_abs) == (4, math.inf)


def test_integers_and_booleans_are_equal_or_wrong():
    assert wrong(torch.tensor([2**60 + 1, 5]), torch.tensor([2**60, 5])) == 1
    assert wrong(torch.tensor([True, False]), torch.tensor([True, True])) == 1
    assert wrong(torch.tensor([3, 4], dtype=torch.int32), torch.tensor([3, 4])) == 0


def test_indices_that_come_with_values_are_not_compared():
    values, one, other = torch.tensor([1.0, 1.0]), torch.tensor([0, 1]), torch.tensor([1, 0])
    assert compare((values, one), (values, other), 1).wrong == 0
    assert wrong(one, other) == 2


def test_complex_numbers_are_compared_by_their_distance():
    wanted = torch.tensor([1 + 1j, 2 - 3j])
    assert wrong(wanted * (1 + 1e-7), wanted) == 0
    assert wrong(wanted.conj(), wanted) == 2


def test_another_shape_or_number_of_results_is_never_equal():
    assert compare((torch.ones(2),), (torch.ones(3),), 1) == Closeness(3, 3, math.inf, math.inf)
    assert wrong(torch.ones(2), torch.ones(0)) == 1
    with pytest.raises(Incomparable, match="1 tensors for 2 of the reference"):
        compare((torch.ones(2),), (torch.ones(2), torch.ones(2)), 1)


def test_a_result_is_taken_apart_into_its_tensors():
    one, other = torch.ones(1), torch.ones(2)
    assert tensors((one, [other])) == (one, other)
    with pytest.raises(Incomparable, match="the result holds NoneType, no tensor"):
        tensors((one, None))
    with pytest.raises(Incomparable, match="the result holds tuple, no tensor"):
        tensors(())
