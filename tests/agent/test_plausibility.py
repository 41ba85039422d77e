from __future__ import annotations

import numpy as np
import pytest

from oclok.agent.plausibility import implausible

GOOD = {
    "normal": lambda rng, n: rng.normal(5, 2, n),
    "far from 0": lambda rng, n: rng.normal(1e6, 1, n),
    "uniform": lambda rng, n: rng.random(n),
    "student 3": lambda rng, n: rng.standard_t(3, n),
    "lognormal 1": lambda rng, n: rng.lognormal(0, 1, n),
    "lognormal 2": lambda rng, n: rng.lognormal(0, 2, n),
    "exponential": lambda rng, n: rng.exponential(3, n),
    "clicks, half": lambda rng, n: (rng.random(n) < 0.5).astype(float),
    "clicks, 2%": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "clicks, 0.1%": lambda rng, n: (rng.random(n) < 0.001).astype(float),
    "counts": lambda rng, n: rng.poisson(0.3, n).astype(float),
    "counts in bursts": lambda rng, n: rng.negative_binomial(0.3, 0.05, n).astype(float),
    "purchases": lambda rng, n: (rng.random(n) < 0.03) * rng.lognormal(4, 1, n),
    "constant": lambda rng, n: np.full(n, 3.0),
}


@pytest.mark.parametrize("name", GOOD)
def test_fewer_than_one_good_outcome_in_a_thousand_is_refused(name: str) -> None:
    """As it is used: each against the latest 1,000 before it, from the fifth on."""
    refused = total = 0
    for seed in range(4):
        y = GOOD[name](np.random.default_rng(seed), 1_500)
        for n in [*range(5, 100), *range(100, 1_500, 5)]:
            refused += bool(implausible(y[max(0, n - 1_000) : n])[-1])
            total += 1
    assert refused < total / 1_000


@pytest.mark.parametrize("name", [name for name in GOOD if name not in ("far from 0", "constant")])
def test_an_outcome_in_the_wrong_unit_is_refused(name: str) -> None:
    rng = np.random.default_rng(0)
    y = GOOD[name](rng, 20_000 if "0.1%" in name else 1_000)
    wrong = 1e5 * np.abs(y[y != 0]).mean()
    assert implausible(np.append(y, wrong))[-1]
    assert implausible(np.append(y, -wrong))[-1]


@pytest.mark.parametrize("name", ["normal", "uniform", "counts", "clicks, 2%"])
def test_those_that_are_wrong_do_not_vouch_for_each_other(name: str) -> None:
    y = GOOD[name](np.random.default_rng(1), 1_000)
    wrong = np.random.default_rng(2).random(1_000) < 0.01
    y[wrong] = 1e4
    np.testing.assert_array_equal(implausible(y), wrong)


def test_a_wrong_one_among_the_first_is_seen_from_the_fifth_on() -> None:
    y = np.array([1e4, 0.5, 0.4, 0.6, 0.3, 0.7])
    assert not implausible(y[:4]).any()
    for n in (5, 6):
        assert implausible(y[:n]).tolist() == [True] + [False] * (n - 1)


def test_what_the_model_expects_is_plausible() -> None:
    y = np.append(np.random.default_rng(0).normal(size=100), [1e4, 1e4])
    expected = np.append(np.zeros(100), [1e4 + 1, 0.0])
    assert implausible(y, expected)[-2:].tolist() == [False, True]


def test_nothing_is_concluded_from_a_first_click() -> None:
    assert not implausible(np.append(np.zeros(500), 1.0)).any()
    assert not implausible(np.append(np.zeros(500), 49.9)).any()
