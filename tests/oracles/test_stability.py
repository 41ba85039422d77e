"""No choice is called stable that exact enumeration finds another index for.

For a super arm S and a rival T, f(S) - f(T) is smallest, over all f within the error of the
index, where arms of S alone are at their least and arms of T alone at their greatest. So S is
best for every f if that smallest difference, in rational numbers, is above 0 for all rivals.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracle_instances import SUMS, answer, exact_sum, feasible_sets, nearly_integers

from oclok.oracles import Oracle, Partition, TopK

ARMS = 6


def least_lead(oracle: Oracle, index: np.ndarray, super_arm: tuple[int, ...], error: np.ndarray):
    """Return the smallest lead of `super_arm` over any rival, for any index within the error."""
    leads = []
    for rival in feasible_sets(oracle, index.size):
        ours, theirs = set(super_arm) - set(rival), set(rival) - set(super_arm)
        lead = exact_sum(index, ours) - exact_sum(index, theirs)
        if ours or theirs:
            leads.append(lead - exact_sum(error, ours | theirs))
    return min(leads, default=Fraction(1))


def near_tie(rng: np.random.Generator, oracle: Oracle, steps: int) -> np.ndarray:
    """Return an index close to one at which the choice changes, by bisection."""
    one = nearly_integers(rng, -2, 5, ARMS) / rng.choice([1.0, 3.0])
    other = nearly_integers(rng, -2, 5, ARMS) / rng.choice([1.0, 7.0])
    if answer(oracle, one) == answer(oracle, other):
        return one
    for _ in range(int(rng.integers(8, steps))):
        middle = (one + other) / 2
        if answer(oracle, middle) == answer(oracle, one):
            one = middle
        else:
            other = middle
    return one


def edge_errors(rng: np.random.Generator, lead: Fraction) -> list[np.ndarray]:
    """Return errors whose sum over a few arms is about `lead`: just below, at and above it."""
    share = rng.dirichlet(np.ones(ARMS)) if rng.random() < 0.5 else np.full(ARMS, 1 / 2)
    factors = [0.0, 0.5, 1 - 1e-8, 1 - 1e-15, 1.0, np.nextafter(1.0, 2.0), 1 + 1e-8, 1.5]
    return [float(lead) * factor * share for factor in rng.choice(factors, 3)]


@pytest.mark.parametrize("kind", SUMS)
def test_no_claim_of_stability_is_wrong(kind: str, adversarial_draws: int) -> None:
    rng = np.random.default_rng(list(SUMS).index(kind))
    claims = 0
    is_slow = kind == "Program"
    for _ in range(adversarial_draws // 6 if is_slow else adversarial_draws):
        oracle = SUMS[kind](rng, ARMS)
        index = near_tie(rng, oracle, steps=20 if is_slow else 54)
        super_arm = answer(oracle, index)
        if super_arm is None:
            continue
        lead = least_lead(oracle, index, super_arm, np.zeros(ARMS))
        for error in edge_errors(rng, abs(lead)):
            if oracle.is_stable(index, np.array(super_arm, dtype=np.intp), error):
                claims += 1
                assert least_lead(oracle, index, super_arm, error) > 0
    assert claims > 10


@pytest.mark.parametrize("kind", SUMS)
def test_clear_choices_are_called_stable(kind: str) -> None:
    rng = np.random.default_rng(5)
    clear = found = 0
    for _ in range(60):
        oracle, index = SUMS[kind](rng, ARMS), rng.standard_normal(ARMS)
        super_arm = answer(oracle, index)
        if super_arm is None:
            continue
        error = np.full(ARMS, 1e-6)
        clear += least_lead(oracle, index, super_arm, 2 * error) > 0
        found += oracle.is_stable(index, np.array(super_arm, dtype=np.intp), error)
    assert found == clear > 10


@pytest.mark.parametrize("kind", SUMS)
def test_another_super_arm_is_never_stable(kind: str) -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        oracle, index = SUMS[kind](rng, ARMS), rng.standard_normal(ARMS)
        chosen = answer(oracle, index)
        for other in feasible_sets(oracle, ARMS)[:10]:
            positions = np.array(other, dtype=np.intp)
            assert other == chosen or not oracle.is_stable(index, positions, np.zeros(ARMS))


@pytest.mark.parametrize("kind", SUMS)
def test_without_a_bound_on_the_error_nothing_is_claimed_unless_it_does_not_matter(kind) -> None:
    rng = np.random.default_rng(7)
    index, checked = rng.random(ARMS), 0
    for _ in range(30):
        oracle = SUMS[kind](rng, ARMS)
        super_arm = answer(oracle, index)
        sets = feasible_sets(oracle, ARMS)
        for arm in range(ARMS):
            matters = len({arm in s for s in sets}) == 2
            error = np.where(np.arange(ARMS) == arm, np.inf, 0.0)
            if super_arm is not None and matters:
                checked += 1
                assert not oracle.is_stable(index, np.array(super_arm, dtype=np.intp), error)
    assert checked > 20


def test_an_unknown_error_of_an_arm_that_is_no_choice_does_not_matter() -> None:
    index, error = np.array([0.9, 0.1, 0.5, 0.7]), np.array([0.0, np.inf, 0.0, np.inf])
    for oracle in (TopK(2), Partition([0, 0, 0, 0], 2)):
        fixed = oracle.given(include=[1], exclude=[3])
        assert fixed.is_stable(index, np.array([0, 1]), error)
        assert not oracle.is_stable(index, np.array([0, 3]), error)
    assert TopK(4).is_stable(index, np.arange(4), error)
    assert TopK(1).given(exclude=[1, 3]).is_stable(index, np.array([0]), error)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e300, 1.7e308])
def test_extreme_sizes_give_no_wrong_claim(size: float) -> None:
    rng = np.random.default_rng(8)
    for kind, make in SUMS.items():
        for _ in range(10):
            oracle, index = make(rng, ARMS), rng.uniform(-1, 1, ARMS) * size
            super_arm = answer(oracle, index)
            error = rng.random(ARMS) * size * rng.choice([0.0, 0.1])
            if super_arm is None:
                continue
            if oracle.is_stable(index, np.array(super_arm, dtype=np.intp), error):
                assert least_lead(oracle, index, super_arm, error) > 0, kind
