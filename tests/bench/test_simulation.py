from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.bench import Channels, Codependency, Crowdsourcing, Movies
from oclok.bench.simulation import simulate
from oclok.errors import InputError
from oclok.policies.base import Belief, Policy
from oclok.policies.oclok import OClokUCB
from oclok.policies.random import Random

COLUMNS = {
    *("round", "reward", "expected_reward", "best_expected_reward", "regret", "alpha_regret"),
    *("seconds", "arms", "chosen"),
    *("certificate_widths", "certificate_information", "information_gain"),
    *("regret_median", "regret_lower", "regret_upper"),
    *("largest_eigenvalue", "delta", "in_band", *(f"coverage_{p}" for p in range(10, 100, 10))),
}


class Knowing(Policy):
    """A policy that knows f, given as a function of contexts, and keeps what it is told."""

    def __init__(self, mean_outcome):
        super().__init__()
        self.mean_outcome = mean_outcome
        self.seen = []

    def _score(self, contexts, t, rng):
        return Belief(self.mean_outcome(contexts))

    def _learn(self, contexts, outcomes):
        self.seen.append((contexts, outcomes))


def movies_f(contexts):
    return np.tanh(2 * contexts[:, 0])


def without_time(table):
    return table.drop(columns="seconds")


@pytest.mark.parametrize(
    "problem",
    [
        Crowdsourcing(rounds=6),
        Codependency(rounds=6, points=300),
        Channels(rounds=6),
        Movies(rounds=6, oracle="greedy"),
        Movies(rounds=2, oracle="tim+"),
    ],
    ids=lambda problem: problem.name,
)
def test_a_table_has_one_row_a_round_and_adds_up(problem):
    table = simulate(Random(seed=0), problem, seed=1)
    assert set(table.columns) == COLUMNS
    assert table["round"].tolist() == list(range(1, len(problem) + 1))
    np.testing.assert_allclose(
        table["regret"], table["best_expected_reward"] - table["expected_reward"]
    )
    assert (table["seconds"] > 0).all()
    assert table["arms"].tolist() == [len(current.means) for current in problem]
    assert (table["chosen"] > 0).all()
    assert np.isfinite(table["alpha_regret"]).all()
    assert table.attrs["problem"] == problem.name
    assert table.attrs["data"] == problem.data_name


def test_a_policy_with_a_certificate_has_its_regret_below_it_in_every_round():
    policy = OClokUCB(RBF(1.0), 0.1)
    table = simulate(policy, Crowdsourcing(rounds=40), seed=1)
    regret = table["regret"].cumsum()
    assert (regret <= table["certificate_widths"]).all()
    assert (table["certificate_widths"] <= table["certificate_information"]).all()
    assert table["certificate_widths"].iloc[-1] == policy.certificate().from_widths
    assert table["information_gain"].is_monotonic_increasing
    assert set(table["in_band"]) <= {0.0, 1.0}
    assert table["coverage_50"].iloc[-1] == policy.calibration().coverage[0.5]
    assert (table["coverage_20"] <= table["coverage_80"]).all()


def test_a_policy_without_a_certificate_has_none_in_the_table():
    table = simulate(Random(seed=0), Crowdsourcing(rounds=2), seed=1)
    assert table[["certificate_widths", "information_gain", "in_band"]].isna().all(axis=None)


def test_the_same_seeds_give_the_same_table():
    first, second = (
        simulate(Random(seed=5), Crowdsourcing(rounds=8, seed=2), seed=3) for _ in range(2)
    )
    assert without_time(first).equals(without_time(second))


def test_the_seed_moves_the_noise_and_nothing_else():
    one, other = (simulate(Random(seed=5), Crowdsourcing(rounds=8), seed=s) for s in (3, 4))
    assert one["expected_reward"].equals(other["expected_reward"])
    assert (one["reward"] != other["reward"]).all()


def test_a_shorter_simulation_is_a_longer_one_truncated():
    short = simulate(Random(seed=5), Crowdsourcing(rounds=4), seed=3)
    long = simulate(Random(seed=5), Crowdsourcing(rounds=9), seed=3)
    assert without_time(short).equals(without_time(long.head(4)))


def test_a_policy_that_knows_the_means_has_no_regret():
    from oclok.bench.problems.crowdsourcing import mean_outcome

    table = simulate(Knowing(mean_outcome), Crowdsourcing(rounds=10), seed=0)
    np.testing.assert_allclose(table["regret"], 0, atol=1e-12)
    np.testing.assert_allclose(table["alpha_regret"], 0, atol=1e-12)


def test_rewards_are_those_of_the_outcomes_that_the_policy_was_told():
    from oclok.bench.problems.crowdsourcing import mean_outcome

    policy = Knowing(mean_outcome)
    table = simulate(policy, Crowdsourcing(rounds=10), seed=0)
    told = [np.log1p(outcomes.sum()) for _, outcomes in policy.seen]
    np.testing.assert_allclose(table["reward"], told)
    noise = np.concatenate([y - mean_outcome(x) for x, y in policy.seen])
    assert 0.06 < noise.std() < 0.14


def test_policies_that_choose_the_same_arms_see_the_same_outcomes():
    from oclok.bench.problems.crowdsourcing import mean_outcome

    one, other = Knowing(mean_outcome), Knowing(lambda x: 2 * mean_outcome(x))
    for policy in (one, other):
        simulate(policy, Crowdsourcing(rounds=5), seed=7)
    for (_, first), (_, second) in zip(one.seen, other.seen, strict=True):
        assert np.array_equal(first, second)


def test_the_benchmark_does_not_move_the_oracle_of_the_policy():
    problem = Movies(rounds=2, oracle="tim+", seed=3)
    table = simulate(Knowing(movies_f), problem, seed=0)
    alone = [
        current.oracle.value(current.means, current.oracle(movies_f(current.contexts)))
        for current in problem
    ]
    np.testing.assert_allclose(table["expected_reward"], alone)
    assert table["regret"].tolist() == [0.0, 0.0]


def test_alpha_regret_is_measured_against_the_exact_optimum():
    problem = Movies(rounds=3, oracle="greedy")
    table = simulate(Random(seed=0), problem, seed=0)
    for (_, row), current in zip(table.iterrows(), problem, strict=True):
        opt = current.oracle.value(current.means, current.exact(current.means))
        expected = (1 - 1 / np.e) * opt - row["expected_reward"]
        assert row["alpha_regret"] == pytest.approx(expected)


def test_alpha_regret_is_nan_where_the_optimum_is_not_known():
    class Hidden(Movies):
        def _round(self, seed):
            current = copy.copy(super()._round(seed))
            object.__setattr__(current, "exact", None)
            return current

    table = simulate(Random(seed=0), Hidden(rounds=2, oracle="greedy"), seed=0)
    assert table["alpha_regret"].isna().all()


def test_notes_of_the_problem_are_kept_with_the_table():
    with pytest.warns(UserWarning, match="fewer users"):
        problem = Movies(rounds=2, oracle="greedy", mean_users=3000)
    assert "fewer users" in simulate(Random(seed=0), problem, seed=0).attrs["notes"]


def test_the_delta_in_the_table_is_that_of_the_policy():
    table = simulate(OClokUCB(RBF(1.0), 0.1, delta=0.2), Crowdsourcing(rounds=2), seed=0)
    assert table["delta"].tolist() == [0.2, 0.2]


def test_arguments_in_another_order_are_an_error_that_says_the_right_one():
    policy, problem = Random(seed=0), Crowdsourcing(rounds=2)
    with pytest.raises(InputError, match=r"\(policy, problem, seed\).*got <Crowdsourcing"):
        simulate(problem, policy, 0)
    with pytest.raises(InputError, match=r"problem must be an oclok\.bench\.Problem; got 7"):
        simulate(policy, 7, problem)


def test_a_policy_that_has_played_is_refused_and_a_warm_start_is_not():
    policy = OClokUCB(RBF(1.0), 0.1)
    policy.observe(np.full((1, 3), 0.5), [1.0])
    simulate(policy, Crowdsourcing(rounds=3), seed=0)
    with pytest.raises(InputError, match="has played 3 rounds before"):
        simulate(policy, Crowdsourcing(rounds=3), seed=1)


def test_a_problem_that_is_not_made_of_rounds_is_an_error():
    class Odd(Crowdsourcing):
        def _round(self, seed):
            return super()._round(seed).contexts

    with pytest.raises(InputError, match=r"must be made of oclok\.bench\.Round"):
        simulate(Random(seed=0), Odd(rounds=1), seed=0)


def test_without_pandas_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from oclok.errors import MissingExtraError\n"
        "from oclok.bench import simulate\n"
        "for name in ('', 'analysis', 'experiments', 'figures', 'report'):\n"
        "    try: __import__(f'oclok.bench.{name}') if name else simulate(None, None, 0)\n"
        "    except MissingExtraError as error:\n"
        "        assert \"pip install 'oclok[bench]'\" in str(error), error\n"
        "    else: raise AssertionError(name)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
