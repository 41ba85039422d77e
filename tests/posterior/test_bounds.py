"""Bounds and proofs against 60-digit arithmetic, on problems made to break them.

The exact posterior of outcomes at a few distinct contexts, however often each was observed, is
that of their averages: a handful of contexts in high precision judges thousands of outcomes.
OCLOK_CASES=2000 draws that many problems instead of the few of the test suite.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, RationalQuadratic

from oclok.oracles import TopK
from oclok.policies import UCB
from oclok.posterior import DictionaryPosterior, ExactPosterior, Posterior, Prediction
from oclok.posterior.bounds import error_bounds, kernel_rounding

CASES = int(os.environ.get("OCLOK_CASES", "60"))
DIGITS = 60


@dataclass(frozen=True)
class Case:
    """Outcomes y (N,) of `weights` at contexts `distinct[which]`, and contexts x to ask for."""

    kernel: Any
    noise_std: float
    distinct: np.ndarray
    which: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    x: np.ndarray

    @property
    def X(self) -> np.ndarray:
        return self.distinct[self.which]


def draw(seed: int) -> Case:
    """Return a problem: few or clustered contexts, far queries, tiny noise, large outcomes."""
    rng = np.random.default_rng([seed, 42])
    D = int(rng.integers(1, 4))
    n = int(rng.integers(1, 13))
    length = float(10 ** rng.uniform(-1, 1.3))
    kernel = [
        RBF(length),
        RBF(length),
        DotProduct(float(10 ** rng.uniform(-1, 1))),
        RationalQuadratic(length, 1.0),
        float(10 ** rng.uniform(-3, 3)) * RBF(length),
        0.5 * RBF(length) + DotProduct(1.0),
        Matern(length, nu=2.5),
    ][rng.integers(7)]
    spread = float(10.0 ** rng.choice([-6, -4, -3, -1, 0, 0, 0.5]))
    distinct = rng.standard_normal(D) + spread * rng.standard_normal((n, D))
    N = int(rng.choice([210, 300, 600]))
    which = rng.integers(0, n, N)
    noise_std = float(10.0 ** rng.choice([-4, -3, -2, -2, -1, -1, 0]))
    scale = float(10.0 ** rng.choice([0, 0, 0, 3, 6]))
    f = np.sin(2 * distinct.sum(axis=1))
    y = scale * (f[which] + noise_std * rng.standard_normal(N))
    weights = np.ones(N) if rng.random() < 0.7 else rng.uniform(0.2, 3.0, N)
    far = float(10.0 ** rng.choice([-1, 0, 1, 1.3]))
    x = distinct[rng.integers(0, n, 6)] + far * rng.standard_normal((6, D))
    return Case(kernel, noise_std, distinct, which, y, weights, np.vstack([x, distinct[:2]]))


def taught(case: Case, kind: Any = DictionaryPosterior) -> Posterior:
    """Return a posterior that has learned a problem in a few pieces, so that it may grow."""
    posterior: Posterior = kind(case.kernel, case.noise_std)
    for part in np.array_split(np.arange(len(case.y)), 4):
        posterior.update(case.X[part], case.y[part], case.weights[part])
    return posterior


def evaluate(kernel: Any, a: np.ndarray, b: np.ndarray) -> Any:
    """Return k(a, b) in high precision."""
    if hasattr(kernel, "k1"):
        one, two = evaluate(kernel.k1, a, b), evaluate(kernel.k2, a, b)
        return one * two if type(kernel).__name__ == "Product" else one + two
    name = type(kernel).__name__
    if name == "ConstantKernel":
        return mp.mpf(float(kernel.constant_value))
    pairs = [(mp.mpf(float(p)), mp.mpf(float(q))) for p, q in zip(a, b, strict=True)]
    if name == "DotProduct":
        return mp.mpf(float(kernel.sigma_0)) ** 2 + mp.fsum(p * q for p, q in pairs)
    square = mp.fsum((p - q) ** 2 for p, q in pairs) / mp.mpf(float(kernel.length_scale)) ** 2
    if name == "RBF":
        return mp.exp(-square / 2)
    if name == "RationalQuadratic":
        alpha = mp.mpf(float(kernel.alpha))
        return (1 + square / (2 * alpha)) ** (-alpha)
    d = mp.sqrt(5 * square)  # Matérn 5/2
    return (1 + d + d**2 / 3) * mp.exp(-d)


def exact(case: Case) -> tuple[list[Any], list[Any]]:
    """Return mean and std of the exact posterior at x, in high precision."""
    seen = np.unique(case.which)
    U = case.distinct[seen]
    sigma2 = mp.mpf(case.noise_std) ** 2
    weight = [mp.fsum(map(float, case.weights[case.which == i])) for i in seen]
    total = [
        mp.fsum(
            mp.mpf(float(w)) * mp.mpf(float(o))
            for w, o in zip(case.weights[case.which == i], case.y[case.which == i], strict=True)
        )
        for i in seen
    ]
    A = mp.matrix(len(U), len(U))
    for i in range(len(U)):
        for j in range(len(U)):
            A[i, j] = evaluate(case.kernel, U[i], U[j])
        A[i, i] += sigma2 / weight[i]
    inverse = A**-1
    means, stds = [], []
    average = mp.matrix([t / w for t, w in zip(total, weight, strict=True)])
    for point in case.x:
        k = mp.matrix([evaluate(case.kernel, u, point) for u in U])
        h = inverse * k
        means.append((h.T * average)[0])
        variance = evaluate(case.kernel, point, point) - (h.T * k)[0]
        stds.append(mp.sqrt(max(variance, mp.mpf(0))))
    return means, stds


def assert_within(prediction: Prediction, means: list[Any], stds: list[Any]) -> None:
    for m in range(len(means)):
        off = abs(mp.mpf(float(prediction.mean[m])) - means[m])
        assert off <= float(prediction.mean_error[m]), f"mean of {m}: off by {mp.nstr(off, 5)}"
        off = abs(mp.mpf(float(prediction.std[m])) - stds[m])
        assert off <= float(prediction.std_error[m]), f"std of {m}: off by {mp.nstr(off, 5)}"


def check(case: Case) -> None:
    with mp.workdps(DIGITS):
        truth = exact(case)
        for kind in (DictionaryPosterior, ExactPosterior):
            posterior = taught(case, kind)
            prediction = posterior.predict(case.x)
            assert_within(prediction, *truth)


@pytest.mark.parametrize("seed", range(CASES))
def test_no_error_is_above_its_bound(seed: int) -> None:
    check(draw(seed))


def test_few_contexts_observed_often_and_a_far_query() -> None:
    distinct = np.array([[0.18], [0.181], [0.253], [0.397]])
    which = np.arange(1_000) % 4
    y = np.sin(2 * distinct[which, 0])
    check(Case(RBF(10.21), 0.01, distinct, which, y, np.ones(1_000), np.array([[17.5]])))


def test_a_cluster_and_a_far_query_of_a_linear_kernel() -> None:
    rng = np.random.default_rng(0)
    distinct = np.array([1.0, 0.5, 0.2]) + 2e-6 * rng.uniform(-1, 1, (12, 3))
    which = np.arange(300) % 12
    y = distinct[which].sum(axis=1) + 0.01 * rng.standard_normal(300)
    x = np.array([[2.0, 1.0, -1.0]])
    check(Case(DotProduct(1.0), 0.01, distinct, which, y, np.ones(300), x))


@pytest.mark.parametrize("seed", range(max(CASES // 10, 6)))
def test_no_decision_is_proven_that_the_exact_posterior_would_not_make(seed: int) -> None:
    """Two arms are moved towards a tie by bisection; a proof must not survive a wrong choice."""
    case = draw(seed)
    policy = UCB(posterior=taught(case), oracle=TopK(1), width=2.0)
    rng = np.random.default_rng(seed)
    a, b = case.x[rng.choice(len(case.x), 2, replace=False)]
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = (low + high) / 2
        arms = np.vstack([a, (1 - middle) * a + middle * b + 1e-3 * (1 - middle) * (b - a)])
        decision = policy.select(arms)
        policy.discard(decision)
        if decision.is_exact:
            with mp.workdps(DIGITS):
                means, stds = exact(Case(**{**case.__dict__, "x": arms}))
                index = [m + 2 * s for m, s in zip(means, stds, strict=True)]
                chosen = int(decision.super_arm[0])
                assert index[chosen] >= index[1 - chosen]
        if decision.super_arm[0] == 0:
            low = middle
        else:
            high = middle
    assert math.isfinite(low)


def test_without_errors_in_the_kernel_there_are_none() -> None:
    mean_error, std_error = error_bounds(np.ones(3), 0.0, 0.0, 0.0, 5.0)
    assert not mean_error.any()
    assert not std_error.any()
    assert kernel_rounding(100, 1.0) < kernel_rounding(100, 1e6)
