from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.bench import Movies
from oclok.bench.experiments import EXPERIMENTS, PAPER
from oclok.bench.experiments.base import seeds
from oclok.bench.experiments.published.movies import PublishedMovies
from oclok.bench.experiments.published.quirks import (
    JITTER,
    QUIRKS,
    JitteredPosterior,
    as_published,
    in_scripts,
)
from oclok.errors import ExperimentError
from oclok.posterior import ExactPosterior, SparsePosterior
from oclok.testing import check_posterior

PAIRS = [(e.name, quirk) for e in PAPER for quirk in in_scripts(e)]


def problem_of(experiment, repeat=0, seed=0):
    settings = experiment.settings(seed=seed)
    return experiment.problem(settings, list(experiment.variants)[-1], 2, repeat)


def policy_of(experiment, label):
    settings = experiment.settings()
    return experiment.policy(label).make(problem_of(experiment), seeds(settings, 0)[2])


def first_round(experiment, repeat=0, seed=0):
    return next(iter(problem_of(experiment, repeat, seed)))


def paper_beta(t, arms):
    return 2 * math.log(arms * math.pi**2 * t**2 / (3 * 0.05))


def test_every_quirk_says_in_one_sentence_what_it_is_and_why_it_is_not_ours():
    assert len(QUIRKS) == 8
    for sentence in QUIRKS.values():
        assert "; " in sentence
        assert sentence.endswith(".")
        assert ". " not in sentence


@pytest.mark.parametrize(("name", "quirk"), PAIRS)
def test_a_quirk_alone_is_named_in_the_title_and_changes_rounds_or_policies(name, quirk):
    ours, theirs = EXPERIMENTS[name], as_published(EXPERIMENTS[name], [quirk])
    assert theirs.title == f"{ours.title}, as published ({quirk})"
    if name == "codependency":
        return  # its rounds take seconds to make; the tests below look at its policies
    same_rounds = np.array_equal(first_round(ours, 1).contexts, first_round(theirs, 1).contexts)
    same_oracle = type(first_round(ours).oracle) is type(first_round(theirs).oracle)
    mine, other = (
        policy_of(experiment, "SO'CLOK-UCB 2")
        if name == "movies"
        else policy_of(experiment, "SO'CLOK-UCB 20")
        for experiment in (ours, theirs)
    )
    same_policy = (
        mine.beta(3, 400) == other.beta(3, 400)
        and type(mine.posterior) is type(other.posterior)
        and mine.posterior.noise_std == other.posterior.noise_std
    )
    assert not (same_rounds and same_oracle and same_policy)
    in_rounds = quirk in (
        "one-draw",
        "shared-numbers",
        "zero-arms",
        "first-profiles",
        "most-genres",
    )
    assert same_policy == in_rounds


def test_as_published_turns_on_all_that_concerns_the_experiment_and_nothing_else():
    title = as_published(EXPERIMENTS["movies"]).title
    assert all(name in title for name in QUIRKS)
    assert "shared-numbers" not in as_published(EXPERIMENTS["crowdsourcing"]).title


def test_nothing_is_on_by_default():
    for experiment in PAPER:
        assert "as published" not in experiment.title
    assert type(problem_of(EXPERIMENTS["movies"])) is Movies
    assert type(policy_of(EXPERIMENTS["movies"], "SO'CLOK-UCB 4").posterior) is SparsePosterior


@pytest.mark.parametrize("name", ["crowdsourcing", "movies"])
def test_one_draw_gives_all_repeats_the_rounds_of_the_first_and_their_own_noise(name):
    ours, theirs = EXPERIMENTS[name], as_published(EXPERIMENTS[name], ["one-draw"])
    first = first_round(ours)
    for repeat in (0, 1, 4):
        assert np.array_equal(first_round(theirs, repeat).contexts, first.contexts)
        assert np.array_equal(first_round(theirs, repeat).means, first.means)
    assert not np.array_equal(first_round(ours, 1).contexts, first.contexts)
    assert not np.array_equal(first_round(theirs, seed=1).contexts, first.contexts)
    settings = theirs.settings()
    assert seeds(settings, 0)[1].spawn_key != seeds(settings, 1)[1].spawn_key


def test_one_draw_shares_f_as_well():
    theirs = as_published(EXPERIMENTS["codependency"], ["one-draw"])
    problems = [problem_of(theirs, repeat) for repeat in (0, 3)]
    ours = [problem_of(EXPERIMENTS["codependency"], repeat) for repeat in (0, 3)]
    means = [next(iter(problem)).means for problem in (*problems, *ours)]
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0], means[2])
    assert not np.array_equal(means[0], means[3])


def test_max_arms_is_150_however_many_there_are():
    theirs = as_published(EXPERIMENTS["movies"], ["max-arms"])
    for arms in (10, 150, 1500):
        assert policy_of(theirs, "SO'CLOK-UCB 4").beta(7, arms) == paper_beta(7, 150)
    ours = policy_of(EXPERIMENTS["movies"], "SO'CLOK-UCB 4")
    assert ours.beta(7, 1500) == paper_beta(7, 1500)


def test_the_regret_that_a_posterior_believes_in_is_not_asked_for():
    policy = policy_of(as_published(EXPERIMENTS["movies"]), "SO'CLOK-UCB 4")
    told = policy.regret()
    assert np.isnan([told.median, told.lower, told.upper]).all()


def test_noise_is_what_the_posterior_believes_in_and_outcomes_stay_0_or_1():
    theirs = as_published(EXPERIMENTS["movies"], ["noise"])
    assert policy_of(theirs, "SO'CLOK-UCB 4").posterior.noise_std == 0.1
    assert policy_of(EXPERIMENTS["movies"], "SO'CLOK-UCB 4").posterior.noise_std == 0.5
    current = first_round(theirs)
    outcomes = current.play(np.arange(50), np.random.default_rng(0))
    assert set(outcomes) <= {0.0, 1.0}


@pytest.mark.parametrize("name", ["crowdsourcing", "codependency", "movies"])
def test_jitter_is_in_the_sparse_posteriors_only(name):
    theirs = as_published(EXPERIMENTS[name], ["jitter"])
    for spec in theirs.policies:
        posterior = getattr(policy_of(theirs, spec.label), "posterior", None)
        assert isinstance(posterior, JitteredPosterior) == spec.label.startswith("SO'CLOK")


def test_quirks_of_the_rounds_reach_the_problem():
    problem = problem_of(as_published(EXPERIMENTS["movies"], ["zero-arms"]))
    assert isinstance(problem, PublishedMovies)
    assert (problem.zero_arms, problem.shared_numbers, problem.first_profiles) == (
        True,
        False,
        False,
    )


def test_policies_are_those_of_the_paper():
    labels = [spec.label for spec in as_published(EXPERIMENTS["movies"]).policies]
    assert labels == ["SO'CLOK-UCB 4", "SO'CLOK-UCB 2", "SO'CLOK-UCB 1", "ACC-UCB"]


def test_what_the_scripts_do_not_have_is_an_error():
    with pytest.raises(ExperimentError, match="movies has no quirk 'magic'; it has jitter, one-"):
        as_published(EXPERIMENTS["movies"], ["magic"])
    with pytest.raises(ExperimentError, match="crowdsourcing has no quirk 'noise'"):
        as_published(EXPERIMENTS["crowdsourcing"], ["noise"])
    with pytest.raises(ExperimentError, match="channels is not in the published scripts"):
        as_published(EXPERIMENTS["channels"])
    assert [bool(in_scripts(experiment)) for experiment in PAPER] == [True, True, True, False]


def test_the_page_on_the_paper_names_every_switch():
    page = Path(__file__).resolve().parents[4] / "docs/explanation/paper.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in QUIRKS if f"`{name}`" not in text] == []


RNG = np.random.default_rng(0)
X, Y, NEW = RNG.random((40, 2)), RNG.normal(size=40), RNG.random((7, 2))


def learned(posterior):
    posterior.update(X[:25], Y[:25])
    posterior.update(X[25:], Y[25:])
    return posterior


@pytest.mark.parametrize(("kernel", "inducing"), [(RBF(0.2), 8), (RBF(1.0), 20), (RBF(1.0), 99)])
def test_it_is_the_collapsed_posterior_with_a_jitter(kernel, inducing):
    # Titsias (2009), equation 6, with K(U, U) + 1e-6 I in the place of K(U, U).
    posterior = learned(JitteredPosterior(kernel, 0.1, inducing, seed=3))
    U = posterior.inducing
    K = kernel(U) + JITTER * np.eye(len(U))
    A = K + kernel(U, X) @ kernel(X, U) / 0.1**2
    k = kernel(NEW, U)
    mean, std = posterior.predict(NEW)
    np.testing.assert_allclose(mean, k @ np.linalg.solve(A, kernel(U, X) @ Y) / 0.1**2, atol=1e-6)
    covariance = kernel(NEW) - k @ np.linalg.solve(K, k.T) + k @ np.linalg.solve(A, k.T)
    np.testing.assert_allclose(std, np.sqrt(np.diag(covariance)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(posterior.covariance(NEW), covariance, atol=1e-7)


def test_points_are_past_contexts_drawn_without_replacement_and_none_is_left_out():
    posterior = learned(JitteredPosterior(RBF(1.0), 0.1, 30, seed=3))
    distinct = np.unique(posterior.inducing, axis=0)
    assert len(distinct) == posterior.rank == 30
    assert np.isin(distinct, X).all()
    assert learned(SparsePosterior(RBF(1.0), 0.1, 30, seed=3)).rank < 30


def test_points_that_are_one_and_the_same_are_no_obstacle():
    posterior = JitteredPosterior(RBF(1.0), 0.1, 4, seed=0)
    posterior.update(np.zeros((50, 1)), np.ones(50))
    mean, std = posterior.predict([[0.0]])
    assert mean == pytest.approx(50 / 50.01, rel=1e-4)
    assert np.isfinite(std)


def test_the_jitter_leaves_a_variance_that_more_points_do_not_take_away():
    # With all contexts as points, the posterior would be exact were it not for the jitter.
    kernel, many = RBF(1.0), np.random.default_rng(1).random((300, 2))
    outcomes = np.zeros(300)
    exact, jittered = ExactPosterior(kernel, 0.01), JitteredPosterior(kernel, 0.01, 300, seed=0)
    plain = SparsePosterior(kernel, 0.01, 300, seed=0)
    for posterior in (exact, jittered, plain):
        posterior.update(many, outcomes)
    stds = [posterior.predict(NEW).std for posterior in (exact, plain, jittered)]
    np.testing.assert_allclose(stds[1], stds[0], rtol=1e-3)
    assert (stds[2] > stds[0]).all()


def test_it_does_what_every_posterior_must():
    check_posterior(lambda: JitteredPosterior(RBF(0.5), 0.1, 20, seed=0), exact=False)


def test_the_same_seed_gives_the_same_posterior():
    one, two = (learned(JitteredPosterior(RBF(0.5), 0.1, 5, seed=7)) for _ in range(2))
    assert np.array_equal(one.inducing, two.inducing)
    assert np.array_equal(one.predict(NEW).mean, two.predict(NEW).mean)
