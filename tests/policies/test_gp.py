from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from oclok.errors import InputError, NumericalError
from oclok.oracles import TopK
from oclok.persistence import dumps
from oclok.policies import UCB, BayesUCB, Discount, OClokUCB, Policy, ThompsonSampling, Window
from oclok.policies.gp import GPPolicy
from oclok.posterior import (
    DictionaryPosterior,
    ExactPosterior,
    ForgettingPosterior,
    MixturePosterior,
    SparsePosterior,
)
from oclok.posterior.fitting import KernelFit
from oclok.testing import check_policy

WRONG = ConstantKernel(1.0) * RBF(3.0)


def play(policy: Policy, rounds: int, seed: int = 0) -> list[list[int]]:
    """Play rounds of a world with lengthscale 0.3 and noise 0.2; 4 of 12 base arms each."""
    rng = np.random.default_rng(seed)
    super_arms = []
    for _ in range(rounds):
        decision = policy.select(rng.random((12, 2)))
        noise = 0.2 * rng.standard_normal(len(decision))
        policy.update(decision, np.sin(9 * decision.contexts[:, 0]) + noise)
        super_arms.append(decision.super_arm.tolist())
    return super_arms


def log_likelihood(policy: GPPolicy, kernel: Any, noise_std: float) -> float:
    """Log marginal likelihood of all that the policy has seen, by scikit-learn."""
    gp = GaussianProcessRegressor(kernel, alpha=noise_std**2, optimizer=None)
    gp.fit(policy.posterior.contexts, policy.posterior.outcomes)
    return float(gp.log_marginal_likelihood_value_)


def test_refits_come_every_so_many_rounds_from_twenty_outcomes_on() -> None:
    policy = BayesUCB(WRONG, 0.05, TopK(4), refit_every=3)
    counts = []
    for seed in range(12):
        play(policy, 1, seed)
        counts.append(len(policy.refits))
    # 4 outcomes a round: 20 of them after round 5, and every third round from there on.
    assert counts == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    assert [fit.count for fit in policy.refits] == [20, 32, 44]


def test_observing_is_no_round_and_makes_no_refit() -> None:
    policy = BayesUCB(WRONG, 0.05, TopK(4), refit_every=1)
    X = np.random.default_rng(0).random((50, 2))
    policy.observe(X, np.sin(9 * X[:, 0]))
    assert policy.refits == []


@pytest.mark.parametrize(
    "posterior",
    [
        lambda: ExactPosterior(WRONG, 0.05),
        lambda: DictionaryPosterior(WRONG, 0.05),
        lambda: SparsePosterior(WRONG, 0.05, 500),
    ],
    ids=["exact", "dictionary", "sparse"],
)
def test_a_refit_makes_what_was_seen_more_likely(posterior: Callable[[], Any]) -> None:
    policy = OClokUCB(posterior=posterior(), oracle=TopK(4), refit_every=10)
    play(policy, 30)
    assert len(policy.refits) == 3
    assert policy.refits[0].improved
    assert all(fit.log_likelihood >= fit.start_log_likelihood for fit in policy.refits)
    kernel, noise_std = policy.posterior.kernel, policy.posterior.noise_std
    last = [fit for fit in policy.refits if fit.improved][-1]
    assert kernel == last.kernel
    assert noise_std == last.noise_std
    gained = log_likelihood(policy, kernel, noise_std) - log_likelihood(policy, WRONG, 0.05)
    assert gained > 0
    judge = ExactPosterior(kernel, noise_std)
    judge.update(policy.posterior.contexts, policy.posterior.outcomes)
    x = np.random.default_rng(1).random((20, 2))
    for ours, theirs in zip(policy.posterior.predict(x), judge.predict(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    assert len(policy.posterior) == 120


def test_calibration_starts_anew_with_a_new_kernel() -> None:
    policy = BayesUCB(WRONG, 0.05, TopK(4), refit_every=10)
    play(policy, 9)
    assert policy.calibration().count == 36
    play(policy, 1, seed=1)
    assert policy.refits[0].improved
    assert policy.calibration().count == 0


def no_better(kernel: Any, contexts: Any, outcomes: Any, noise_std: float, **how: Any) -> KernelFit:
    return KernelFit(kernel, noise_std, -1.0, -1.0, False, len(outcomes), "nothing better")


def test_a_refit_that_brings_nothing_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oclok.policies.gp.fit_kernel", no_better)
    refitting = BayesUCB(RBF(0.5), 0.1, TopK(4), refit_every=2)
    plain = BayesUCB(RBF(0.5), 0.1, TopK(4))
    assert play(refitting, 15) == play(plain, 15)
    assert len(refitting.refits) == 6
    assert dumps(refitting.posterior) == dumps(plain.posterior)
    assert refitting.calibration() == plain.calibration()


def fails(*args: Any, **how: Any) -> Any:
    raise NumericalError("not positive definite")


@pytest.mark.parametrize("what", ["fit_kernel", "with_kernel"])
def test_a_refit_that_fails_changes_nothing_and_loses_no_outcome(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "fit_kernel":
        monkeypatch.setattr("oclok.policies.gp.fit_kernel", fails)
    else:
        monkeypatch.setattr(DictionaryPosterior, "with_kernel", fails)
    refitting = BayesUCB(WRONG, 0.05, TopK(4), refit_every=2)
    plain = BayesUCB(WRONG, 0.05, TopK(4))
    assert play(refitting, 15) == play(plain, 15)
    assert dumps(refitting.posterior) == dumps(plain.posterior)
    assert refitting.pending == []


def test_there_is_no_certificate_after_a_refit() -> None:
    policy = OClokUCB(WRONG, 0.05, TopK(4), refit_every=8)
    play(policy, 7)
    assert policy.certificate().from_widths < math.inf
    play(policy, 3, seed=1)
    assert policy.refits[0].improved
    assert policy.certificate().from_widths == math.inf
    assert policy.certificate().from_information == math.inf


@pytest.mark.parametrize("forget", [Window(40), Discount(0.9)], ids=str)
def test_there_is_no_certificate_for_a_policy_that_forgets(forget: Any) -> None:
    policy = OClokUCB(RBF(0.5), 0.1, TopK(4), forget=forget)
    play(policy, 1)
    assert policy.certificate().from_widths == math.inf


@pytest.mark.parametrize(
    ("forget", "window", "rate", "most"),
    [(Window(40), 40, None, 45), (Discount(0.9), None, 0.9, 160)],
    ids=["window", "discount"],
)
def test_a_policy_can_forget_and_refit(
    forget: Any, window: int | None, rate: float | None, most: int
) -> None:
    policy = BayesUCB(WRONG, 0.05, TopK(4), refit_every=5, forget=forget)
    play(policy, 40)
    assert any(fit.improved for fit in policy.refits)
    posterior = policy.posterior
    assert isinstance(posterior, ForgettingPosterior)
    assert (posterior.window, posterior.rate) == (window, rate)
    assert len(posterior) <= most


@pytest.mark.parametrize("forget", [None, Window(40)], ids=str)
def test_a_loaded_policy_refits_as_the_saved_one_does(forget: Any, tmp_path: Path) -> None:
    policy = ThompsonSampling(WRONG, 0.05, TopK(4), seed=2, refit_every=4, forget=forget)
    play(policy, 10)
    assert policy.refits
    policy.save(tmp_path / "policy")
    loaded = ThompsonSampling.load(tmp_path / "policy")
    assert play(loaded, 15, seed=1) == play(policy, 15, seed=1)
    assert [fit.log_likelihood for fit in loaded.refits] == [
        fit.log_likelihood for fit in policy.refits
    ]
    assert dumps(loaded) == dumps(policy)


POLICIES: dict[str, Callable[[], Policy]] = {
    "refit": lambda: OClokUCB(RBF(0.5), 0.1, TopK(3), refit_every=10),
    "window": lambda: OClokUCB(RBF(0.5), 0.1, TopK(3), forget=Window(30)),
    "discount": lambda: OClokUCB(RBF(0.5), 0.1, TopK(3), forget=Discount(0.9)),
    "window and refit": lambda: ThompsonSampling(
        RBF(0.5), 0.1, TopK(3), seed=1, forget=Window(30), refit_every=10
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_that_refit_or_forget_conform(name: str) -> None:
    check_policy(POLICIES[name])


@pytest.mark.parametrize("policy", [OClokUCB, BayesUCB, ThompsonSampling])
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"forget": 5}, "forget"),
        ({"forget": Window}, "forget"),
        ({"forget": Window(0)}, "window"),
        ({"forget": Window(2.5)}, "window"),  # type: ignore[arg-type]
        ({"forget": Discount(1.0)}, "discount"),
        ({"forget": Discount(0.0)}, "discount"),
        ({"refit_every": 0}, "refit_every"),
        ({"refit_every": 1.5}, "refit_every"),
    ],
    ids=str,
)
def test_settings_that_mean_nothing_are_refused(
    policy: Any, settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        policy(RBF(1.0), 0.1, **settings)


def test_forgetting_is_for_policies_that_make_their_own_posterior() -> None:
    with pytest.raises(InputError, match="posterior"):
        BayesUCB(posterior=ExactPosterior(RBF(1.0), 0.1), forget=Window(5))


@pytest.mark.parametrize("policy", [UCB, OClokUCB, BayesUCB, ThompsonSampling])
def test_without_kernel_and_noise_a_mixture_learns_them(policy: Any) -> None:
    """The regret is less than half of that of choosing at random; outcomes are thousands."""
    rng = np.random.default_rng(0)
    learner, lost, by_chance = policy(oracle=TopK(3)), 0.0, 0.0
    assert isinstance(learner.posterior, MixturePosterior)
    for _ in range(30):
        contexts = rng.random((30, 3))
        means = 5000 + 1000 * np.sin(6 * contexts[:, 0])
        decision = learner.select(contexts)
        learner.update(decision, means[decision.super_arm] + 100 * rng.standard_normal(3))
        best = np.sort(means)[-3:].sum()
        lost += best - means[decision.super_arm].sum()
        by_chance += best - 3 * means.mean()
    assert lost < 0.5 * by_chance
