from __future__ import annotations

import numpy as np
import pytest

from oclok.errors import InfeasibleError, OracleError
from oclok.oracles import Path, TopK
from oclok.oracles.base import Oracle, SumOracle
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


class SteepInOneArm(AtMostTwo):
    """Claims a constant for a value that changes faster in the last base arm."""

    def value(self, means, super_arm):
        return super().value(means, super_arm) + (means[4] ** 9 if 4 in super_arm else 0.0)


class AlwaysStable(AtMostTwo):
    def is_stable(self, index, super_arm, error):
        return True


class StableWhereNothingIsKnown(AtMostTwo):
    def is_stable(self, index, super_arm, error):
        return bool(np.isinf(error).all())


class StableUpToTwiceTheGap(AtMostTwo):
    """Forgets that a rival moves as well."""

    def is_stable(self, index, super_arm, error):
        rivals = np.delete(index, super_arm)
        return bool((index[super_arm] - error[super_arm]).min(initial=np.inf) > rivals.max())


class StableByChance(AtMostTwo):
    beta = 0.9

    def is_stable(self, index, super_arm, error):
        return True


class Fixable(AtMostTwo):
    """Includes and excludes as it should; the classes below do not."""

    include = exclude = np.empty(0, dtype=int)

    def given(self, include=(), exclude=()):
        twin = type(self)()
        twin.include, twin.exclude = np.asarray(include), np.asarray(exclude)
        return twin

    def is_feasible(self, super_arm):
        if not np.isin(self.include, super_arm).all() or np.isin(self.exclude, super_arm).any():
            return False
        return super().is_feasible(super_arm)

    def _solve(self, index):
        index = index.copy()
        index[self.include], index[self.exclude] = 1e9, -1e9
        return super()._solve(index)


class IgnoresIncluded(Fixable):
    def _solve(self, index):
        return AtMostTwo._solve(self, index)

    def is_feasible(self, super_arm):
        return AtMostTwo.is_feasible(self, super_arm)


class OnlyIncluded(Fixable):
    def _solve(self, index):
        return self.include if self.include.size else super()._solve(index)


class GivesUpWhenFixed(Fixable):
    def given(self, include=(), exclude=()):
        raise InfeasibleError("cannot be")


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
    check_oracle(Fixable())


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
        (SteepInOneArm, "lipschitz = 1.0 allows"),
        (AlwaysStable, "is called stable within an error of"),
        (StableWhereNothingIsKnown, "is called stable within an error of inf"),
        (StableUpToTwiceTheGap, "is called stable within an error of"),
        (StableByChance, "nothing is certain where beta < 1"),
        (IgnoresIncluded, "lacks a base arm that must be included|must be excluded"),
        (OnlyIncluded, "less than alpha"),
        (GivesUpWhenFixed, "is infeasible .* would do"),
        (Boastful, "alpha must be in"),
    ],
)
def test_whatever_is_wrong_is_named(wrong, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_oracle(wrong())


def test_a_solver_without_a_guarantee_cannot_be_defined():
    with pytest.raises(OracleError, match="Silent has a solver but states no guarantee: set alpha"):

        class Silent(SumOracle):
            def _solve(self, index):
                return np.arange(1)

            def is_feasible(self, super_arm):
                return True


def test_an_oracle_claims_nothing_that_it_does_not_state():
    class Plain(Oracle):
        alpha = 0.5

        def _solve(self, index):
            return np.arange(1)

        def value(self, means, super_arm):
            return 0.0

        def is_feasible(self, super_arm):
            return True

    assert Plain().lipschitz is None
    assert not Plain().is_stable(np.ones(2), np.array([0]), np.zeros(2))
    assert not AtMostTwo().is_stable(np.arange(5.0), np.array([3, 4]), np.zeros(5))


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
