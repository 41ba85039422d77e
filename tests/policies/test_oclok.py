from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.policies import OClokUCB
from oclok.posterior import ExactPosterior, SparsePosterior


@pytest.mark.parametrize("t", [1, 7, 250])
@pytest.mark.parametrize("arms", [1, 100])
@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_beta_is_that_of_theorem_1(t: int, arms: int, delta: float) -> None:
    policy = OClokUCB(RBF(1.0), 0.1, delta=delta)
    expected = 2 * math.log(arms * math.pi**2 * t**2 / (3 * delta))
    assert policy.beta(t, arms) == pytest.approx(expected, rel=1e-14)


def test_beta_counts_max_arms_where_it_is_given() -> None:
    policy = OClokUCB(RBF(1.0), 0.1, max_arms=100)
    assert policy.beta(3, 10) == policy.beta(3, 100)
    assert policy.beta(3, 10) == OClokUCB(RBF(1.0), 0.1).beta(3, 100)


def test_more_arms_than_max_arms_are_refused() -> None:
    policy = OClokUCB(RBF(1.0), 0.1, TopK(1), max_arms=5)
    with pytest.raises(InputError, match="max_arms=5"):
        policy.select(np.zeros((6, 2)))
    assert policy.round == 0


def algorithm_1(
    kernel: Any, noise_std: float, delta: float, K: int, rounds: list[np.ndarray], seed: int
) -> tuple[list[list[int]], list[np.ndarray], list[np.ndarray]]:
    """Algorithm 1 of the paper as it stands there, fitting scikit-learn anew each round."""
    rng = np.random.default_rng(seed)
    X: list[np.ndarray] = []
    r: list[float] = []
    super_arms, outcomes, indices = [], [], []
    for t, contexts in enumerate(rounds, start=1):
        if X:
            gp = GaussianProcessRegressor(kernel, alpha=noise_std**2, optimizer=None)
            mu, sigma = gp.fit(np.array(X), np.array(r)).predict(contexts, return_std=True)
        else:
            mu, sigma = np.zeros(len(contexts)), np.sqrt(kernel.diag(contexts))
        beta = 2 * math.log(len(contexts) * math.pi**2 * t**2 / (3 * delta))
        index = mu + math.sqrt(beta) * sigma
        S = sorted(np.argsort(-index, kind="stable")[:K].tolist())
        seen = np.sin(3 * contexts[S].sum(axis=1)) + noise_std * rng.standard_normal(K)
        X.extend(contexts[S])
        r.extend(seen.tolist())
        super_arms.append(S)
        outcomes.append(seen)
        indices.append(index)
    return super_arms, outcomes, indices


@pytest.mark.parametrize("kernel", [RBF(0.5), 2.0 * Matern([0.4, 0.8, 0.6], nu=2.5)], ids=str)
@pytest.mark.parametrize("posterior", [False, True])
def test_sixty_rounds_are_those_of_algorithm_1(kernel: Any, posterior: bool) -> None:
    rng = np.random.default_rng(0)
    rounds = [rng.random((rng.integers(10, 60), 3)) for _ in range(60)]
    super_arms, outcomes, indices = algorithm_1(kernel, 0.1, 0.05, 5, rounds, seed=1)
    belief: dict[str, Any] = (
        {"posterior": ExactPosterior(kernel, 0.1)}
        if posterior
        else {"kernel": kernel, "noise_std": 0.1}
    )
    policy = OClokUCB(**belief, oracle=TopK(5), delta=0.05)
    for t, contexts in enumerate(rounds):
        np.testing.assert_allclose(policy.index(contexts), indices[t], rtol=0, atol=1e-8)
        decision = policy.select(contexts)
        assert decision.super_arm.tolist() == super_arms[t]
        np.testing.assert_allclose(decision.index, indices[t][super_arms[t]], rtol=0, atol=1e-8)
        policy.update(decision, outcomes[t])


@pytest.mark.parametrize("posterior", [None, SparsePosterior(RBF(0.5), 0.1, 8, seed=0)])
def test_a_decision_holds_the_belief_it_was_made_of(posterior: Any) -> None:
    belief: dict[str, Any] = (
        {"posterior": posterior} if posterior else {"kernel": RBF(0.5), "noise_std": 0.1}
    )
    policy = OClokUCB(**belief, oracle=TopK(3))
    rng = np.random.default_rng(0)
    for t in range(1, 12):
        contexts = rng.random((9, 2))
        mean, std = policy.posterior.predict(contexts)
        decision = policy.select(contexts)
        np.testing.assert_array_equal(decision.mean, mean[decision.super_arm])
        np.testing.assert_array_equal(decision.std, std[decision.super_arm])
        bound = decision.mean + math.sqrt(policy.beta(t, 9)) * decision.std
        np.testing.assert_allclose(decision.index, bound, rtol=1e-14)
        policy.update(decision, rng.standard_normal(3))


@pytest.mark.parametrize(
    "settings",
    [
        {"refit_every": 10},
        {"kernel": RBF(1.0)},
        {"noise_std": 0.1},
        {"kernel": RBF(1.0), "posterior": ExactPosterior(RBF(1.0), 0.1)},
        {"posterior": RBF(1.0)},
        {"kernel": RBF(1.0), "noise_std": 0.1, "delta": 0.0},
        {"kernel": RBF(1.0), "noise_std": 0.1, "delta": 1.0},
        {"kernel": RBF(1.0), "noise_std": 0.1, "delta": "0.1"},
        {"kernel": RBF(1.0), "noise_std": 0.1, "max_arms": 0},
        {"kernel": RBF(1.0), "noise_std": -0.1},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        OClokUCB(**settings)


def test_a_posterior_that_has_learned_something_sets_the_dimension() -> None:
    posterior = ExactPosterior(RBF(1.0), 0.1)
    posterior.update([[0.1, 0.2]], [1.0])
    policy = OClokUCB(posterior=posterior, oracle=TopK(1))
    with pytest.raises(InputError, match="2 columns"):
        policy.select([[0.1, 0.2, 0.3]])
    assert policy.select([[0.1, 0.2]]).mean[0] > 0.5


def verdicts(policy: OClokUCB) -> dict[str, str]:
    return {each.name: each.verdict for each in policy.certificate().assumptions}


def play(policy: OClokUCB, rounds: int = 30, scale: float = 1.0, skip: bool = False) -> None:
    rng = np.random.default_rng(0)
    for t in range(rounds):
        decision = policy.select(rng.random((8, 2)))
        outcomes = scale * np.sin(3 * decision.contexts.sum(axis=1))
        outcomes += 0.1 * rng.standard_normal(len(decision))
        if not (skip and t == 5):
            policy.update(decision, outcomes)


def test_where_all_is_well_no_assumption_is_contradicted() -> None:
    policy = OClokUCB(RBF(0.5), 0.1, TopK(2))
    assert verdicts(policy)["prior"] == "unchecked"
    play(policy)
    assert verdicts(policy) == {
        "prior": "not contradicted",
        "kernel": "holds",
        "arrival": "holds",
        "oracle": "holds",
    }


def test_outcomes_a_thousand_times_too_large_contradict_the_prior() -> None:
    policy = OClokUCB(RBF(1.0), 0.1, TopK(2))
    play(policy, scale=1_000.0)
    assert verdicts(policy)["prior"] == "contradicted"


def test_a_missing_outcome_leaves_arrival_unchecked() -> None:
    policy = OClokUCB(RBF(1.0), 0.1, TopK(2))
    play(policy, skip=True)
    assert verdicts(policy)["arrival"] == "unchecked"
    policy.discard(policy.pending[0])
    assert verdicts(policy)["arrival"] == "unchecked"


@pytest.mark.parametrize(
    "policy",
    [OClokUCB(oracle=TopK(2)), OClokUCB(RBF(0.01), 1.0, TopK(2), refit_every=20)],
    ids=["mixture", "refitted"],
)
def test_a_kernel_that_was_learned_is_not_fixed(policy: OClokUCB) -> None:
    play(policy)
    assert verdicts(policy)["kernel"] == "contradicted"
    assert policy.certificate().from_widths == math.inf


def test_an_oracle_that_states_no_constant_contradicts_and_the_bound_is_infinite() -> None:
    policy = OClokUCB(RBF(1.0), 0.1, TopK(2, reward=np.exp))
    play(policy)
    assert verdicts(policy)["oracle"] == "contradicted"
    assert policy.certificate().from_widths == math.inf
