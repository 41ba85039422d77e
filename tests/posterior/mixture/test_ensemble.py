"""Which members an ensemble has, given data that only one of them can have made."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.errors import NumericalError
from oclok.persistence import dumps, loads
from oclok.posterior.mixture.averaging import Mixed
from oclok.posterior.mixture.ensemble import Ensemble
from oclok.posterior.mixture.scaling import ContextScale, Known
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import Prediction

KERNELS = [RBF(0.05) + 1.0, RBF(0.5) + 1.0]
RATIOS = [0.01, 0.3]


def smooth(n, seed=0):
    """Outcomes of RBF(0.5) and little noise, as known and as arrays."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 1))
    y = np.sin(4 * X[:, 0]) + 0.05 * rng.standard_normal(n)
    observations = Observations()
    observations.extend(X, y)
    return Known(observations, ContextScale(is_fixed=True), 0.0)


def lengthscales(ensemble):
    return {member.posterior.kernel.k1.length_scale for member in ensemble.members}


def test_there_is_a_member_for_each_kernel_and_noise():
    assert len(Ensemble(KERNELS, RATIOS, smooth(1), 0).members) == 4


@pytest.mark.parametrize("count", [60, 400])
def test_members_that_foresaw_badly_are_dropped(count):
    known = smooth(count)
    ensemble = Ensemble(KERNELS, RATIOS, known, 0)
    ensemble.learn_first(known)
    ensemble.drop(known)
    assert lengthscales(ensemble) == {0.5}
    assert all(len(member) == count for member in ensemble.members)


def test_few_outcomes_drop_nobody():
    known = smooth(20)
    ensemble = Ensemble(KERNELS, RATIOS, known, 0)
    ensemble.learn_first(known)
    ensemble.drop(known)
    assert len(ensemble.members) == 4


def test_many_outcomes_at_first_leave_the_members_that_learning_step_by_step_leaves():
    known = smooth(400)
    at_once, stepwise = (Ensemble(KERNELS, RATIOS, known, 0) for _ in range(2))
    at_once.learn_first(known)
    x, y, w = known.at()
    for start in range(0, 400, 50):
        rows = slice(start, start + 50)
        stepwise.learn([Prediction.of(x[rows])] * 4, y[rows], w[rows])
    best = [Mixed.of(each.members, known.prior).heaviest for each in (at_once, stepwise)]
    assert best[0].number == best[1].number


def test_work_ends_and_a_fitted_member_comes_in():
    known = smooth(100)
    ensemble = Ensemble(None, RATIOS, known, 0)
    ensemble.learn_first(known)
    ensemble.drop(known)
    assert ensemble.is_due(known)
    ensemble.begin(known)
    assert not ensemble.is_due(known)
    steps = 0
    while ensemble.work(known, 5):
        steps += 1
    assert 5 < steps < 60  # a part at a time
    assert all(len(member) == 100 for member in ensemble.members)


def test_learning_that_fails_for_all_members_leaves_them_as_they_are():
    known = smooth(20)
    ensemble = Ensemble(KERNELS, RATIOS, known, 0)
    ensemble.learn_first(known)
    bad = Prediction.of(np.full((3, 1), np.nan))
    with pytest.raises(NumericalError):
        ensemble.learn([bad] * 4, np.zeros(3), np.ones(3))
    assert [len(member) for member in ensemble.members] == [20] * 4


def tried(ensemble, known):
    """Return the ensemble after all trials and fits on what is known."""
    ensemble.learn_first(known)
    ensemble.drop(known)
    ensemble.begin(known)
    while ensemble.work(known, 5):
        pass
    return ensemble


def test_members_keep_the_contexts_of_the_same_outcomes_once():
    known = smooth(100)
    ensemble = tried(Ensemble(None, RATIOS, known, 0), known)
    assert any(member.is_fitted for member in ensemble.members)
    assert keeps_contexts_once(ensemble)
    assert keeps_contexts_once(loads(dumps(ensemble)))
    ensemble.relearn(known)
    assert keeps_contexts_once(ensemble)


def keeps_contexts_once(ensemble):
    return len({id(member.posterior.observations.rows) for member in ensemble.members}) == 1


def test_surprises_begin_trials_again_only_after_a_quarter_more_outcomes():
    known = smooth(200)
    ensemble = tried(Ensemble(KERNELS, RATIOS, known, 0), known)
    x, y, w = smooth(50, seed=1).at()
    y = y + 3 * (-1.0) ** np.arange(50)
    for rows in (slice(0, 49), slice(49, 50)):
        assert not ensemble.is_due(known)
        ensemble.learn([Prediction.of(x[rows])] * len(ensemble.members), y[rows], w[rows])
        known.observations.extend(x[rows], y[rows])
    assert ensemble.is_due(known)
