"""`from_widths` bounds the regret, whatever happens to feedback, oracles and decisions.

Problems are samples of the prior, so the theory applies to each run. The union bound behind it is
so loose that no run may pass the bound, and that a bound half as large would still hold: so it is
also compared with the formula, computed by dense linear algebra.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok import OClokUCB
from oclok.decision import Decision
from oclok.oracles import Coverage, Knapsack, Oracle, Partition, TopK
from oclok.posterior import ExactPosterior

ROUNDS, ARMS, RUNS, DELTA, NOISE_STD = 10, 8, 40, 0.05, 0.1
KERNEL = RBF(0.3)


def oracles(rng: np.random.Generator, mixed: bool) -> Oracle:
    """Return the oracle of a round: always the same kind, or one of several."""
    kind = int(rng.integers(3)) if mixed else 0
    if kind == 1:
        return Knapsack(rng.integers(1, 4, ARMS), 5.0)
    if kind == 2:
        return Partition(rng.integers(0, 3, ARMS), 1)
    return TopK(2)


def regret_and_bound(
    rng: np.random.Generator,
    policy: OClokUCB,
    *,
    mixed: bool = False,
    greedy: bool = False,
    latest: int = 0,
    missing: float = 0.0,
    warm: int = 0,
) -> tuple[float, float]:
    """Play a problem drawn from the prior; return true regret and `from_widths`.

    Args:
        rng: randomness of the problem.
        policy: a new policy.
        mixed: another kind of oracle in each round.
        greedy: a greedy solver, whose regret is against α times the best.
        latest: rounds by which an outcome may be late.
        missing: share of outcomes that never arrive, whatever they are.
        warm: outcomes observed before the first round.
    """
    X = rng.random((warm + ROUNDS * ARMS, 1))
    K = KERNEL(X) + 1e-9 * np.eye(len(X))
    f = np.linalg.cholesky(K) @ rng.standard_normal(len(X))
    if greedy:
        f = np.clip(f, 0.0, 1.0)  # probabilities of edges
    if warm:
        policy.observe(X[:warm], f[:warm] + NOISE_STD * rng.standard_normal(warm))
    waiting = []
    regret = 0.0
    for t in range(ROUNDS):
        rows = slice(warm + t * ARMS, warm + (t + 1) * ARMS)
        means = f[rows]
        if greedy:
            left, right = rng.integers(0, 4, (2, ARMS))
            oracle: Oracle = Coverage(left, right, 2, solver="greedy")
            best = Coverage(left, right, 2)
        else:
            oracle = best = oracles(rng, mixed)
        decision = policy.select(X[rows], oracle)
        earned = oracle.value(means, decision.super_arm)
        regret += oracle.alpha * best.value(means, best(means)) - earned
        outcomes = means[decision.super_arm] + NOISE_STD * rng.standard_normal(len(decision))
        outcomes[rng.random(len(decision)) < missing] = np.nan
        waiting.append((t + int(rng.integers(latest + 1)), decision, outcomes))
        for due in [each for each in waiting if each[0] <= t]:
            policy.update(*due[1:])
            waiting.remove(due)
    return regret, policy.certificate().from_widths


VARIANTS: dict[str, Callable[[np.random.Generator], tuple[float, float]]] = {
    "prompt": lambda rng: regret_and_bound(rng, policy()),
    "late": lambda rng: regret_and_bound(rng, policy(), latest=4),
    "partial": lambda rng: regret_and_bound(rng, policy(), missing=0.4),
    "mixed oracles, late": lambda rng: regret_and_bound(rng, policy(), mixed=True, latest=3),
    "warm start": lambda rng: regret_and_bound(rng, policy(), warm=15, mixed=True),
    "guaranteed conditioning": lambda rng: regret_and_bound(
        rng, policy(condition_on_chosen="guaranteed"), latest=3
    ),
    "all of it": lambda rng: regret_and_bound(
        rng, policy(max_arms=ARMS), mixed=True, latest=3, missing=0.3, warm=10
    ),
}


def policy(**settings: object) -> OClokUCB:
    return OClokUCB(posterior=ExactPosterior(KERNEL, NOISE_STD), delta=DELTA, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_regret_passes_the_bound(variant: str) -> None:
    runs = [VARIANTS[variant](np.random.default_rng([7, run])) for run in range(RUNS)]
    regret, bound = np.array(runs).T
    assert np.isfinite(bound).all()
    assert (regret > 0).any()
    assert (regret <= bound).all()


@pytest.mark.parametrize("latest", [0, 3])
def test_the_bound_is_that_of_the_textbook(latest: int) -> None:
    """Equation 11: 2 Σ_t √β_t Σ_k σ_t,k, with σ_t from a dense solve over what is known by then."""
    rng, ours = np.random.default_rng(3), policy()
    X = np.empty((0, 1))
    waiting: list[tuple[int, Decision, np.ndarray]] = []
    expected = 0.0
    for t in range(1, ROUNDS + 1):
        decision = ours.select(rng.random((ARMS, 1)), TopK(2))
        x = decision.contexts
        k = KERNEL(X, x)
        known = KERNEL(X) + NOISE_STD**2 * np.eye(len(X)) if len(X) else np.empty((0, 0))
        std = np.sqrt(1.0 - np.einsum("nk,nk->k", k, np.linalg.solve(known, k)))
        beta = 2 * math.log(ARMS * math.pi**2 * t**2 / (3 * DELTA))
        expected += 2 * math.sqrt(beta) * float(std.sum())
        waiting.append((t + latest, decision, rng.standard_normal(2)))
        for due in [each for each in waiting if each[0] <= t]:
            ours.update(*due[1:])
            waiting.remove(due)
            X = np.vstack([X, due[1].contexts])
    bound = ours.certificate().from_widths
    assert expected <= bound <= expected * (1 + 1e-6)  # rounding is added


def test_a_greedy_solver_keeps_the_bound_on_the_regret_against_alpha() -> None:
    """Edges have probabilities: a sample of the prior, clipped, lies no further from its index."""
    runs = [
        regret_and_bound(np.random.default_rng([8, run]), policy(), greedy=True)
        for run in range(RUNS)
    ]
    regret, bound = np.array(runs).T
    assert (regret <= bound).all()


def test_outcomes_that_stay_away_because_they_are_poor_break_the_bound() -> None:
    """What the assumption of arrival rules out: docs/explanation/theory.md names it."""
    rng = np.random.default_rng(0)
    chosen = OClokUCB(RBF(0.1), 1.0, TopK(1), DELTA)
    arms, means, regret = np.array([[0.0], [1.0]]), np.array([0.0, 1.1]), 0.0
    for _ in range(6_000):
        decision = chosen.select(arms)
        outcome = means[decision.super_arm] + rng.standard_normal(1)
        regret += 1.1 - means[decision.super_arm[0]]
        if decision.super_arm[0] == 0 and outcome[0] < 1.1:
            chosen.discard(decision)
        else:
            chosen.update(decision, outcome)
    certificate = chosen.certificate()
    assert regret > certificate.from_widths
    arrival = next(each for each in certificate.assumptions if each.name == "arrival")
    assert arrival.verdict == "unchecked"
