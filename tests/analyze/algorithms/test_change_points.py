"""Change points of series with planted shifts."""

import numpy as np
import pytest

from roast_analyze.algorithms.change_points import find_changes


def find(values, **options):
    return find_changes(
        np.asarray(values), **{"significance": 1e-3, "min_change": 0.05} | options
    )


def noise(size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 0.08, size)


def test_a_shift_is_within_its_range_and_noise_has_none():
    for seed in range(20):
        values = noise(120, seed)
        assert find(values) == []

        values[60:] += 0.14
        [point] = find(values)

        assert point.low <= 60 <= point.high
        assert point.after - point.before == pytest.approx(0.14, abs=0.05)


def test_a_known_change_in_the_range_is_preferred():
    values = noise(120, seed=5)  # the most likely change point is not at the shift
    values[60:] += 0.14

    [point], [marked] = find(values), find(values, marks={10, 60})

    assert point.index != 60
    assert (marked.index, marked.p_value) == (60, point.p_value)


def test_several_shifts_are_found_in_order():
    values = noise(300)
    values[100:] += 0.3
    values[200:] -= 0.2

    assert [point.index for point in find(values, marks={100, 200})] == [100, 200]


def test_a_shift_below_the_limit_is_not_a_change():
    values = noise(1000) / 10
    values[500:] += 0.03

    assert find(values) == []
    assert len(find(values, min_change=0.02)) == 1


def test_a_few_extreme_values_are_not_a_change():
    values = noise(120)
    values[[5, 90, 118, 119]] = 10.0

    assert find(values) == []


@pytest.mark.parametrize("values", [[], [1.0] * 4, [1.0] * 50, [0.0] * 5 + [1.0] * 4])
def test_equal_or_few_values_have_no_change(values):
    assert find(values) == []
