"""What a posterior keeps from one call for the next must never show in an answer."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct

from oclok.errors import NumericalError
from oclok.oracles import Matching, TopK
from oclok.persistence import dumps, loads
from oclok.policies import OClokUCB
from oclok.posterior import DictionaryPosterior, ExactPosterior, Posterior
from oclok.testing.assertions import check_alike

POSTERIORS = pytest.mark.parametrize("make", [ExactPosterior, DictionaryPosterior])
OBSERVED = pytest.mark.parametrize("observed", [20, 300])


def taught(make: Any, observed: int, seed: int = 0) -> Posterior:
    rng = np.random.default_rng(seed)
    posterior: Posterior = make(RBF(1.0), 0.1)
    X = rng.random((observed, 2))
    posterior.update(X, np.sin(4 * X[:, 0]))
    return posterior


@POSTERIORS
@OBSERVED
@pytest.mark.parametrize("how", ["view", "unlock", "buffer"])
def test_read_only_contexts_that_change_all_the_same_are_seen(
    make: Any, observed: int, how: str
) -> None:
    rng = np.random.default_rng(1)
    posterior, fresh = taught(make, observed), taught(make, observed)
    if how == "buffer":
        memory = bytearray(rng.random((6, 2)).tobytes())
        X = np.frombuffer(memory).reshape(6, 2)
        writable = np.frombuffer(memory).reshape(6, 2)
        X.flags.writeable = False
    else:
        X = rng.random((6, 2))
        writable = X[:] if how == "view" else X
        X.flags.writeable = False
    posterior.predict(X)
    posterior.covariance(X)
    if how == "unlock":
        X.flags.writeable = True
    writable[:] = rng.random((6, 2))
    np.testing.assert_array_equal(posterior.covariance(X), fresh.covariance(X))
    y, x = np.ones(6), rng.random((9, 2))
    for each in (posterior, fresh):
        each.update(X, y)
    np.testing.assert_allclose(posterior.predict(x).mean, fresh.predict(x).mean, rtol=0, atol=1e-9)


@POSTERIORS
@OBSERVED
def test_a_decision_without_arms_is_in_nobodys_way(make: Any, observed: int) -> None:
    rng = np.random.default_rng(0)
    policy = OClokUCB(posterior=make(RBF(1.0), 0.1), oracle=TopK(2))
    policy.observe(rng.random((observed, 2)), np.full(observed, -50.0))
    arms = rng.random((6, 2))
    decision = policy.select(arms)
    assert len(policy.select(arms[:3], Matching([0, 1, 2], [0, 1, 2]))) == 0
    policy.update(decision, [-50.0, -50.0])
    assert len(policy.posterior) == observed + 2
    assert policy.posterior.covariance(arms).shape == (6, 6)


@POSTERIORS
@OBSERVED
def test_with_contexts_twice_a_loaded_policy_learns_the_same(make: Any, observed: int) -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        policy = OClokUCB(posterior=taught(make, observed), oracle=TopK(4))
        arms = np.repeat(rng.random((5, 2)), 3, axis=0)
        decision = policy.select(arms[rng.permutation(15)])
        loaded = loads(dumps(policy))
        for each in (policy, loaded):
            each.update(decision, [0.1, 0.2, 0.3, 0.4])
        check_alike(policy, loaded, "a loaded policy")


@POSTERIORS
@OBSERVED
def test_a_copied_policy_shares_nothing_that_can_change(make: Any, observed: int) -> None:
    policy = OClokUCB(posterior=taught(make, observed), oracle=TopK(2))
    policy.select(np.random.default_rng(3).random((8, 2)))
    twin = copy.deepcopy(policy)
    with pytest.raises(ValueError, match="read-only"):
        twin.pending[0].contexts[:] = 0.0
    for each in (policy, twin):
        each.update(each.pending[0], [0.1, 0.2])
    check_alike(policy, twin, "a copy")


def test_a_failed_update_of_many_leaves_nothing_behind() -> None:
    X = np.random.default_rng(4).random((1_100, 2))
    X[1_090:] = 1e100
    posterior, fresh = (
        ExactPosterior(DotProduct(1.0) ** 2, 0.1),
        ExactPosterior(DotProduct(1.0) ** 2, 0.1),
    )
    with pytest.raises(NumericalError), np.errstate(all="ignore"):
        posterior.update(X, np.ones(1_100))
    assert len(posterior) == 0
    with np.errstate(all="ignore"):
        ours, theirs = (each.covariance(X[1_024:])[:60, :60] for each in (posterior, fresh))
    np.testing.assert_array_equal(ours, theirs)


def test_a_dictionary_refuses_what_is_not_finite() -> None:
    X = np.random.default_rng(5).random((300, 2))
    posterior = DictionaryPosterior(DotProduct(1.0) ** 2, 0.1)
    posterior.update(X, np.ones(300))
    assert posterior.rank < 300
    state = dumps(posterior)
    with pytest.raises(NumericalError, match="not finite"), np.errstate(all="ignore"):
        posterior.update([[1e100, 0.0]], [1.0])
    assert dumps(posterior) == state
