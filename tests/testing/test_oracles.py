from __future__ import annotations

import numpy as np
import pytest

from oclok.errors import InfeasibleError, OracleError
from oclok.oracles import Path, TopK
from oclok.oracles.base import SumOracle
from oclok.testing.oracles import check_oracle


class AtMostTwo(SumOracle):
    """A right oracle; the classes below each get one thing wrong."""

    alpha = 1.0
    size = 5

    def is_feasible(self, super_arm):
        chosen = self._positions(super_arm)
        return chosen is not None and chosen.size <= 2

    def _solve(self, index):
        best = np.argsort(-index, kind="stable")[:2]
        return np.sort(best[index[best] > 0])


class Descending(AtMostTwo):
    def _solve(self, index):
        return super()._solve(index)[::-1]


class AsList(AtMostTwo):
    def _solve(self, index):
        return super()._solve(index).tolist()


class TakesThree(AtMostTwo):
    def _solve(self, index):
        return np.arange(3)


class TakesWorst(AtMostTwo):
    def _solve(self, index):
        return super()._solve(-index)


class SpoilsIndex(AtMostTwo):
    def _as_index(self, index):
        index[0] += 1.0
        return super()._as_index(index)


class Undecided(AtMostTwo):
    _calls = 0

    def _solve(self, index):
        Undecided._calls += 1
        return np.array([Undecided._calls % 5])


class Forgetful(AtMostTwo):
    def __init__(self):
        self.limit = 2

    def _solve(self, index):
        return super()._solve(index)[: self.limit]

    def _restore(self, state):
        self.limit = 1


class NotToBeSaved(AtMostTwo):
    def __init__(self):
        self.secret = object()


class GivesUp(AtMostTwo):
    def _solve(self, index):
        raise InfeasibleError("nothing fits")


class Credulous(AtMostTwo):
    def _as_index(self, index):
        return np.nan_to_num(np.ravel(index))[: self.size]


class AnythingGoes(AtMostTwo):
    def is_feasible(self, super_arm):
        return len(super_arm) <= 2


class Steep(AtMostTwo):
    def value(self, means, super_arm):
        return 3 * super().value(means, super_arm)


class Boastful(AtMostTwo):
    alpha = 1.5


class Lucky(AtMostTwo):
    """Finds the best super arm with probability 0.7."""

    def __init__(self, beta):
        self.beta = beta
        self._rng = np.random.default_rng(0)

    def _solve(self, index):
        if self._rng.random() < 0.7:
            return super()._solve(index)
        return super()._solve(-np.abs(index))


class HalfAsGood(AtMostTwo):
    """Takes one base arm: at least half of what the best two are worth."""

    alpha = 0.5

    def _solve(self, index):
        return super()._solve(index) if (index <= 0).all() else np.array([np.argmax(index)])


def test_a_right_oracle_passes():
    check_oracle(AtMostTwo())
    check_oracle(HalfAsGood())


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (Descending, "not ascending"),
        (AsList, "not a 1-D array of integers"),
        (TakesThree, "not feasible"),
        (TakesWorst, "less than alpha = 1.0 times the best value"),
        (SpoilsIndex, "was changed into"),
        (Undecided, "a save and a load|only beta < 1 allows"),
        (Forgetful, "after a save and a load"),
        (NotToBeSaved, "cannot be saved"),
        (GivesUp, "InfeasibleError for index"),
        (Credulous, "NaN must raise"),
        (AnythingGoes, r"is_feasible\(\[0, 0\]\) must be False"),
        (Steep, "lipschitz = 1.0 allows"),
        (Boastful, "alpha must be in"),
    ],
)
def test_whatever_is_wrong_is_named(wrong, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_oracle(wrong())


def test_a_promise_kept_by_chance_is_judged_by_its_share():
    check_oracle(Lucky(beta=0.7))
    check_oracle(Lucky(beta=0.5))
    with pytest.raises(AssertionError, match=r"beta = 0\.95 promises more"):
        check_oracle(Lucky(beta=0.95))


def test_an_infeasible_problem_is_rightly_refused():
    check_oracle(Path([0, 1], [1, 0], 0, 5))


def test_an_index_that_the_oracle_refuses_is_left_out_by_its_family():
    oracle = Path([0, 1, 2, 1], [1, 2, 1, 3], 0, 3)
    with pytest.raises(OracleError, match="graph with cycles"):
        check_oracle(oracle)
    check_oracle(oracle, families=["negative"])


def test_the_number_of_base_arms_must_be_known_and_small():
    with pytest.raises(OracleError, match="say how many"):
        check_oracle(TopK(2))
    with pytest.raises(OracleError, match="1 to 14 base arms; got 15"):
        check_oracle(TopK(2), 15)
    with pytest.raises(OracleError, match="describes 5 base arms; got arms=4"):
        check_oracle(AtMostTwo(), 4)


def test_what_is_no_oracle_is_named():
    with pytest.raises(AssertionError, match="does not derive from"):
        check_oracle(np.argmax)
