from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from oclok.bench import (
    Channels,
    Codependency,
    Crowdsourcing,
    Drift,
    Groups,
    Movies,
    Problem,
    Round,
    Table,
)
from oclok.bench.problems.base import Count, bernoulli, gaussian
from oclok.errors import InputError, OutcomeError
from oclok.oracles import TopK

FRAME = pd.DataFrame(np.random.default_rng(0).random((200, 3)), columns=["outcome", "x", "y"])
FRAME["round"] = np.arange(200) // 10

PROBLEMS = {
    "crowdsourcing": lambda **how: Crowdsourcing(**how),
    "codependency": lambda **how: Codependency(points=300, **how),
    "movies, exact": lambda **how: Movies(oracle="exact", **how),
    "movies, tim+": lambda **how: Movies(oracle="tim+", **how),
    "channels": lambda **how: Channels(**how),
    "drift": lambda **how: Drift(points=300, change_after=3, **how),
    "groups": lambda **how: Groups(points=300, **how),
    "table": lambda **how: Table(FRAME, round="round", outcome="outcome", k=3, **how),
}


@pytest.fixture(params=PROBLEMS.values(), ids=PROBLEMS.keys())
def make(request):
    return request.param


def same(one: Round, other: Round) -> bool:
    return np.array_equal(one.contexts, other.contexts) and np.array_equal(one.means, other.means)


def test_iterating_twice_gives_the_same_rounds(make):
    problem = make(rounds=4, seed=3)
    first, second = list(problem), list(problem)
    assert len(first) == len(second) == len(problem) == 4
    assert all(map(same, first, second))
    assert all(
        np.array_equal(one.oracle(one.means), other.oracle(other.means))
        for one, other in zip(first[:2], second[:2], strict=True)
    )


def test_a_shorter_problem_is_a_longer_one_truncated(make):
    assert all(map(same, make(rounds=3, seed=5), list(make(rounds=6, seed=5))[:3]))


def test_another_seed_gives_other_rounds(make):
    first, second = next(iter(make(rounds=1, seed=0))), next(iter(make(rounds=1, seed=1)))
    assert not same(first, second)


def test_rounds_differ_from_each_other(make):
    first, second = make(rounds=2, seed=0)
    assert not same(first, second)


def test_a_seed_sequence_is_as_good_as_its_seed_however_often_it_has_spawned(make):
    seed = np.random.SeedSequence(7)
    seed.spawn(3)
    assert same(next(iter(make(rounds=1, seed=seed))), next(iter(make(rounds=1, seed=7))))


def test_rounds_have_the_shapes_that_the_problem_promises(make):
    problem = make(rounds=3, seed=0)
    for current in problem:
        arms = len(current.means)
        assert current.contexts.shape == (arms, problem.dimension)
        assert current.contexts.min() >= 0
        assert current.contexts.max() <= 1
        assert current.oracle.is_feasible(current.oracle(current.means))


def test_a_problem_says_what_it_is_and_which_data_it_runs_on(make):
    problem = make(rounds=1, seed=0)
    assert problem.data_name
    assert problem.name in repr(problem)
    assert problem.data_name in repr(problem)
    assert problem.notes == ""


def test_arrays_of_a_round_cannot_be_written_to(make):
    current = next(iter(make(rounds=1, seed=0)))
    with pytest.raises(ValueError, match="read-only"):
        current.means[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        current.contexts[0, 0] = 1.0


@pytest.mark.parametrize("rounds", [0, -1, 2.5])
def test_a_wrong_number_of_rounds_is_refused(make, rounds):
    with pytest.raises(InputError, match="rounds"):
        make(rounds=rounds, seed=0)


def test_a_negative_seed_is_refused(make):
    with pytest.raises(InputError, match="seed"):
        make(rounds=1, seed=-1)


def test_the_outcome_of_a_base_arm_does_not_depend_on_the_rest_of_the_super_arm(make):
    current = next(iter(make(rounds=1, seed=0)))
    alone = current.play([4], np.random.default_rng(1))
    together = current.play([1, 4, 6], np.random.default_rng(1))
    assert alone[0] == together[1]


def test_gaussian_outcomes_have_the_mean_and_the_deviation_they_should():
    current = Round(np.zeros((50_000, 1)), np.full(50_000, 0.3), TopK(5), gaussian(0.1))
    outcomes = current.play(np.arange(50_000), np.random.default_rng(0))
    assert outcomes.mean() == pytest.approx(0.3, abs=0.003)
    assert outcomes.std() == pytest.approx(0.1, rel=0.02)


def test_bernoulli_outcomes_are_zero_or_one_with_the_right_mean():
    outcomes = bernoulli(np.full(50_000, 0.3), np.random.default_rng(0))
    assert set(outcomes) == {0.0, 1.0}
    assert outcomes.mean() == pytest.approx(0.3, abs=0.01)


def test_the_reward_of_a_sum_is_the_sum_of_the_outcomes():
    current = Round(np.zeros((4, 1)), np.zeros(4), TopK(2), gaussian(0.1))
    assert current.reward([1, 3], [0.25, -0.5]) == -0.25


def test_a_reward_needs_one_outcome_per_chosen_arm():
    current = Round(np.zeros((4, 1)), np.zeros(4), TopK(2), gaussian(0.1))
    with pytest.raises(OutcomeError, match="shape"):
        current.reward([1, 3], [0.25])


def test_positions_outside_the_round_are_refused():
    current = Round(np.zeros((4, 1)), np.zeros(4), TopK(2), gaussian(0.1))
    with pytest.raises(InputError, match="below 4"):
        current.play([1, 4], np.random.default_rng(0))


def test_an_exact_oracle_is_its_own_judge():
    oracle = TopK(2)
    assert Round(np.zeros((4, 1)), np.zeros(4), oracle, gaussian(0.1)).exact is oracle


def test_a_count_is_poisson_given_that_it_is_large_enough():
    rng = np.random.default_rng(0)
    drawn = np.array([Count(6, least=5).draw(rng) for _ in range(20_000)])
    reference = rng.poisson(6, 200_000)
    assert drawn.min() == 5
    assert drawn.mean() == pytest.approx(reference[reference >= 5].mean(), rel=0.01)


def test_a_mean_below_the_fewest_is_refused():
    with pytest.raises(InputError, match="at least 6"):
        Crowdsourcing(mean_arms=5, k=5)


def test_a_problem_can_be_sent_to_another_process(make):
    problem = make(rounds=2, seed=1)
    assert all(map(same, problem, pickle.loads(pickle.dumps(problem))))


def test_a_new_problem_needs_one_method():
    class Flat(Problem):
        name, dimension = "flat", 1

        def __init__(self):
            super().__init__(rounds=2, seed=0)

        def _round(self, seed):
            means = np.random.default_rng(seed).random(10)
            return Round(means[:, None].copy(), means, TopK(2), gaussian(0.1))

    assert [len(current.means) for current in Flat()] == [10, 10]


def test_a_problem_without_a_name_has_that_of_its_class():
    class Bare(Crowdsourcing.__base__):
        def _round(self, seed):
            raise NotImplementedError

    assert Bare(rounds=1, seed=0).name == "Bare"
    assert Crowdsourcing(rounds=1).name == "crowdsourcing"


def test_the_callers_arrays_stay_writeable_and_apart():
    contexts, means = np.zeros((4, 2)), np.zeros(4)
    current = Round(contexts, means, TopK(2), gaussian(0.1))
    contexts[0, 0], means[0] = 1.0, 1.0
    assert current.contexts[0, 0] == current.means[0] == 0.0


def test_lists_are_as_good_as_arrays():
    current = Round([[0.0], [1.0]], [0.5, 0.25], TopK(1), gaussian(0.1))
    assert current.best().tolist() == [0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"contexts": np.zeros(4)}, r"contexts must have shape \(M, D\)"),
        ({"contexts": np.full((4, 1), np.nan)}, "contexts must be finite"),
        ({"means": np.zeros(3)}, r"means must have shape \(4,\); got shape \(3,\)"),
        ({"means": [0, 0, np.inf, 0]}, "means must be finite"),
        ({"oracle": 5}, "oracle must be an oclok.oracles.Oracle"),
        ({"oracle": gaussian(0.1), "noise": TopK(2)}, "oracle must be an oclok.oracles.Oracle"),
        ({"noise": 0.1}, "noise must be a function"),
        ({"exact": "yes"}, "exact must be an oclok.oracles.Oracle"),
    ],
)
def test_a_round_is_checked_when_it_is_made(wrong, message):
    right = {"contexts": np.zeros((4, 1)), "means": np.zeros(4)}
    right |= {"oracle": TopK(2), "noise": gaussian(0.1)}
    with pytest.raises(InputError, match=message):
        Round(**(right | wrong))


def test_noise_of_a_wrong_shape_is_an_error_that_says_so():
    current = Round(np.zeros((4, 1)), np.zeros(4), TopK(2), lambda means, rng: means[:2])
    with pytest.raises(OutcomeError, match="shape"):
        current.play([0], np.random.default_rng(0))
