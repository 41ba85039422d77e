"""Beyond the budget: exact where the neighbours are all outcomes, and honest where they are not."""

import copy

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from oclok import BayesUCB, persistence
from oclok.errors import OclokError
from oclok.oracles import TopK
from oclok.policies.calibration import calibrate
from oclok.posterior import DictionaryPosterior, ExactPosterior
from oclok.posterior.dictionary import neighbours
from oclok.posterior.dictionary import posterior as dictionary
from oclok.posterior.dictionary.nystrom import NystromModel
from oclok.posterior.dictionary.vecchia import VecchiaModel
from oclok.posterior.kernels import Covariance

NOISE_STD = 0.1
KERNELS = [Matern(0.5, nu=1.5), RBF(0.2), Matern([0.3, 2.0], nu=2.5), RBF(0.3) + DotProduct(1.0)]


def model_of(kernel, U):
    prior = Covariance(kernel)
    R = np.linalg.cholesky(prior.of(U))
    return VecchiaModel(NystromModel(prior, NOISE_STD, U, R, 0.0))


def taught_one_by_one(kernel, rng, count):
    """Return a model with few enough outcomes for all of them to be neighbours."""
    X, y = rng.random((count, 2)), rng.standard_normal(count)
    model = model_of(kernel, rng.random((4, 2)))
    for n in range(count):
        model.update(X[n : n + 1], y[n : n + 1])
    return model, X, y


def sampled(kernel, rng, count, dimension):
    X = rng.random((count, dimension))
    f = np.linalg.cholesky(kernel(X) + 1e-9 * np.eye(count)) @ rng.standard_normal(count)
    return X, f


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_it_is_scikit_learns_posterior_if_all_outcomes_are_neighbours(kernel):
    rng = np.random.default_rng(0)
    model, X, y = taught_one_by_one(kernel, rng, 40)
    judge = GaussianProcessRegressor(kernel, alpha=NOISE_STD**2, optimizer=None).fit(X, y)
    asked = rng.random((20, 2))
    mean, std = judge.predict(asked, return_std=True)
    ours = model.predict(asked)
    np.testing.assert_allclose(ours.mean, mean, atol=1e-8)
    np.testing.assert_allclose(ours.std, std, atol=1e-8)


def test_its_information_gain_is_the_exact_one_if_all_outcomes_are_neighbours():
    model, X, y = taught_one_by_one(KERNELS[0], np.random.default_rng(0), 40)
    exact = ExactPosterior(KERNELS[0], NOISE_STD)
    exact.update(X, y)
    assert model.information_gain == pytest.approx(exact.information_gain, abs=1e-8)


def test_what_a_context_is_told_by_neighbours_is_the_dense_formula_on_them():
    rng = np.random.default_rng(1)
    kernel = Matern(0.5, nu=2.5)
    model, X, y = taught_one_by_one(kernel, rng, 40)
    x = rng.random((1, 2))
    local = model.predict(x).local
    phi, phi_x = model.features(X)[0], model.features(x)[0][:, 0]
    E = kernel(X) - phi.T @ phi
    e = kernel(X, x)[:, 0] - phi.T @ phi_x
    h = np.linalg.solve(E + NOISE_STD**2 * np.eye(40), e)
    np.testing.assert_allclose(local.features[:, 0], phi_x - phi @ h, atol=1e-9)
    assert local.variance[0] == pytest.approx(1.0 - phi_x @ phi_x - e @ h, abs=1e-9)
    assert local.mean[0] == pytest.approx(h @ y, abs=1e-9)


def test_one_neighbour_is_the_dense_formula_on_the_nearest_outcome():
    rng = np.random.default_rng(2)
    kernel = Matern(0.5, nu=1.5)
    model, X, y = taught_one_by_one(kernel, rng, 30)
    x = rng.random((1, 2))
    rough = model.screen(x)
    nearest = int(np.argmin(((X - x) ** 2).sum(axis=1)))
    phi, phi_x = (
        model.features(X)[0][:, nearest],
        model.features(x)[0][:, 0],
    )
    e = kernel(X[[nearest]], x)[0, 0] - phi @ phi_x
    h = e / (1.0 - phi @ phi + NOISE_STD**2)
    assert rough.local.mean[0] == pytest.approx(h * y[nearest], abs=1e-9)
    np.testing.assert_allclose(rough.local.features[:, 0], phi_x - phi * h, atol=1e-9)


def test_sharpening_some_is_predicting_them():
    model, _, _ = taught_one_by_one(KERNELS[0], np.random.default_rng(0), 40)
    asked = np.random.default_rng(5).random((10, 2))
    rough, full = model.screen(asked), model.predict(asked)
    sharp = rough.sharpen(np.array([2, 7]))
    for name in ("mean", "std"):
        values = getattr(sharp, name)
        np.testing.assert_allclose(values[[2, 7]], getattr(full, name)[[2, 7]], rtol=1e-12)
        np.testing.assert_array_equal(
            np.delete(values, [2, 7]), np.delete(getattr(rough, name), [2, 7])
        )
    assert sharp.sharpen(np.array([7])) is sharp


def test_its_covariance_is_that_of_a_joint_distribution():
    model, X, _ = taught_one_by_one(KERNELS[0], np.random.default_rng(0), 40)
    asked = np.vstack([X[:5], X[:5], np.random.default_rng(6).random((10, 2))])
    covariance = model.covariance(asked)
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()), model.predict(asked).std, rtol=1e-9)
    np.testing.assert_allclose(covariance[:5, 5:10], covariance[:5, :5], atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


@pytest.mark.parametrize(
    ("kernel", "dimension"), [(Matern(0.3, nu=1.5), 3), (RBF(0.1), 3), (Matern(1.0, nu=2.5), 8)]
)
def test_it_is_neither_overconfident_nor_underconfident(kernel, dimension):
    verdicts = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, f = sampled(kernel, rng, 600, dimension)
        y = f + NOISE_STD * rng.standard_normal(len(f))
        posterior = DictionaryPosterior(kernel, NOISE_STD, max_rank=64)
        innovations = [posterior.learn(X[n : n + 5], y[n : n + 5]) for n in range(0, 600, 5)]
        verdicts.append(calibrate(*np.hstack(innovations)).verdict)
    assert verdicts.count("neither") >= 5


@pytest.mark.parametrize("count", [1, 5, 100])
def test_the_rank_never_exceeds_the_budget(count):
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(Matern(1.0, nu=2.5), NOISE_STD, max_rank=40)
    for _ in range(300 // count):
        posterior.offer(rng.random((20, 3)))
        posterior.update(rng.random((count, 3)), rng.standard_normal(count))
        assert posterior.rank <= 40
    assert np.isinf(posterior.predict(rng.random((3, 3))).mean_error).all()


def test_contexts_that_tell_nothing_of_one_another_take_no_dictionary():
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(RBF(0.1), NOISE_STD, max_rank=64)
    posterior.update(rng.standard_normal((500, 20)), rng.standard_normal(500))
    assert posterior.rank == 1


def test_only_the_latest_outcomes_are_neighbours(monkeypatch):
    monkeypatch.setattr(neighbours, "WINDOW", 32)
    rng = np.random.default_rng(0)
    model = model_of(RBF(0.05), rng.random((2, 1)))
    for n in range(100):
        model.update([[float(n)]], [1.0])
    std = model.predict(np.array([[10.0], [80.0]])).std
    assert std[0] == pytest.approx(1.0)
    assert std[1] < 0.2
    assert len(model.neighbours.X) == 32


def test_a_dictionary_that_grows_in_steps_ends_up_exact(monkeypatch):
    monkeypatch.setattr(dictionary, "AT_ONCE", 0)
    monkeypatch.setattr(dictionary, "AHEAD", 0)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.random((900, 2)), 1.0 + rng.random((300, 2))])
    y = np.sin(X).sum(axis=1)
    posterior, exact = DictionaryPosterior(RBF(1.0), NOISE_STD), ExactPosterior(RBF(1.0), NOISE_STD)
    posterior.update(X[:900], y[:900])
    rank = posterior.rank
    with monkeypatch.context() as patched:  # nothing is taught on the side
        patched.setattr(DictionaryPosterior, "_advance", lambda self, X: None)
        posterior.update(X[900:], y[900:])
    asked = 2.0 * rng.random((50, 2))
    assert np.isinf(posterior.predict(asked).mean_error).all()
    posterior.maintain()
    exact.update(X, y)
    ours, judge = posterior.predict(asked), exact.predict(asked)
    assert posterior.rank > rank
    assert (np.abs(ours.mean - judge.mean) <= ours.mean_error + judge.mean_error).all()
    assert (np.abs(ours.std - judge.std) <= ours.std_error + judge.std_error).all()


def test_saved_and_loaded_it_goes_on_alike(tmp_path):
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(Matern(0.3, nu=1.5), NOISE_STD, max_rank=32)
    posterior.update(rng.random((200, 3)), rng.standard_normal(200))
    persistence.save(posterior, tmp_path / "posterior")
    loaded = persistence.load(tmp_path / "posterior")
    for _ in range(20):
        X, y = rng.random((5, 3)), rng.standard_normal(5)
        for each in (posterior, loaded):
            each.update(X, y)
    asked = rng.random((30, 3))
    for ours, theirs in zip(posterior.predict(asked), loaded.predict(asked), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_a_batch_that_cannot_be_learned_changes_nothing():
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(Matern(0.3, nu=1.5) + DotProduct(), NOISE_STD, max_rank=32)
    posterior.update(rng.random((200, 3)), rng.standard_normal(200))
    before = copy.deepcopy(posterior)
    for count in (3, 300):
        X = rng.random((count, 3))
        X[-1] = 1e200
        with pytest.raises(OclokError):
            posterior.update(X, rng.standard_normal(count))
    asked = rng.random((10, 3))
    assert len(posterior) == len(before)
    np.testing.assert_array_equal(posterior.predict(asked).mean, before.predict(asked).mean)


def test_a_batch_that_fails_halfway_brings_back_the_neighbours_it_overwrote(monkeypatch):
    monkeypatch.setattr(neighbours, "WINDOW", 256)
    monkeypatch.setattr(VecchiaModel, "_at_once", 64)
    rng = np.random.default_rng(0)
    model = model_of(Matern(0.3, nu=1.5) + DotProduct(), rng.random((4, 3)))
    model.update(rng.random((300, 3)), rng.standard_normal(300), np.ones(300))
    asked = rng.random((20, 3))
    before, gain = model.predict(asked), model.information_gain
    outcomes = rng.standard_normal(200)
    outcomes[-1] = np.nan
    with pytest.raises(OclokError):
        model.update(rng.random((200, 3)), outcomes, np.ones(200))
    after = model.predict(asked)
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(after.std, before.std)
    assert model.information_gain == gain


def test_a_policy_looks_closely_at_all_that_it_chooses():
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(Matern(0.3, nu=1.5), NOISE_STD, max_rank=32)
    policy = BayesUCB(posterior=posterior, oracle=TopK(3))
    X = rng.random((400, 2))
    policy.observe(X, np.sin(5 * X).sum(axis=1))
    for _ in range(10):
        arms = rng.random((30, 2))
        index = policy.index(arms)
        decision = policy.select(arms)
        np.testing.assert_allclose(decision.index, index[decision.super_arm], rtol=1e-9)
        assert not decision.is_exact
        policy.update(decision, np.sin(5 * decision.contexts).sum(axis=1))


@pytest.mark.parametrize("at_once", [1, 5, 700])
def test_outcomes_at_one_context_are_never_too_many(at_once):
    """However many of them there are, none is forgotten: the std falls as that of their mean."""
    rng = np.random.default_rng(0)
    posterior = DictionaryPosterior(Matern(0.3, nu=1.5), NOISE_STD, max_rank=32)
    posterior.update(rng.random((100, 2)), rng.standard_normal(100))
    X, y = np.full((1_400, 2), 0.5), 1.0 + NOISE_STD * rng.standard_normal(1_400)
    for start in range(0, len(X), at_once):
        posterior.update(X[start : start + at_once], y[start : start + at_once])
    mean, std = posterior.predict([[0.5, 0.5]])
    assert std[0] == pytest.approx(NOISE_STD / np.sqrt(1_400), rel=0.01)
    assert abs(mean[0] - y.mean()) < std[0]


def test_repeated_contexts_are_as_good_as_exact_if_all_are_neighbours():
    rng = np.random.default_rng(0)
    arms = rng.random((40, 2))
    ours = DictionaryPosterior(Matern(0.3, nu=1.5), NOISE_STD, max_rank=32)
    exact = ExactPosterior(Matern(0.3, nu=1.5), NOISE_STD)
    for _ in range(120):
        X = arms[rng.choice(40, 5)]
        y, weights = np.sin(5 * X).sum(axis=1), rng.uniform(0.5, 2.0, 5)
        for posterior in (ours, exact):
            posterior.update(X, y, weights)
    a, b = ours.predict(arms), exact.predict(arms)
    np.testing.assert_allclose(a.mean, b.mean, atol=0.01)
    np.testing.assert_allclose(a.std, b.std, rtol=0.1)


def test_a_correction_moves_means_as_learning_the_right_outcomes_would() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((700, 3))
    X[600:] = X[:100]  # outcomes at one context share a slot
    y = np.sin(5 * X).sum(axis=1) + 0.1 * rng.standard_normal(700)
    right = y.copy()
    right[::30] += rng.standard_normal(len(y[::30]))
    corrected, taught = (
        DictionaryPosterior(Matern(0.3, nu=1.5), 0.1, max_rank=64) for _ in range(2)
    )
    for start in range(0, 700, 10):
        part = slice(start, start + 10)
        corrected.update(X[part], y[part])
        taught.update(X[part], right[part])
    before = corrected.predict(X).mean
    corrected.correct(X[::30], y[::30], right[::30])
    after, wanted = corrected.predict(X).mean, taught.predict(X).mean
    assert np.linalg.norm(after - wanted) < 0.05 * np.linalg.norm(before - wanted)
    np.testing.assert_array_equal(corrected.outcomes, right)


def test_what_neighbours_leave_is_at_most_what_the_dictionary_leaves():
    # At contexts of the dictionary that is nothing but rounding error, which varies by batch.
    rng = np.random.default_rng(0)
    U = rng.random((60, 3))
    model = model_of(RBF(0.3), U)
    model.update(U[:40] + 1e-9, rng.standard_normal(40))
    contexts = np.vstack([U, rng.random((40, 3))])
    for count in range(1, 30):
        chosen = rng.permutation(100)[:count]
        prediction = model.screen(contexts).sharpen(chosen)
        local = prediction.local
        assert (local.variance <= local.residual).all()
        assert np.abs(prediction.covariance()).max() < 1.1
