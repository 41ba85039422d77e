from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.tree import DecisionTreeRegressor

from oclok.decision import Decision
from oclok.errors import FeedbackError
from oclok.oracles import TopK
from oclok.policies import OClokUCB, Policy
from oclok.policies.acc_ucb import ACCUCB
from oclok.policies.epsilon_greedy import EpsilonGreedy
from oclok.policies.grid import CCMAB, CUCB
from oclok.policies.linear import C2UCB, LinearThompson
from oclok.policies.neural_linear import NeuralLinear
from oclok.policies.random import Random
from oclok.posterior import DictionaryPosterior, ExactPosterior, SparsePosterior
from oclok.testing import check_policy

POLICIES: dict[str, Callable[[], Policy]] = {
    "OClokUCB": lambda: OClokUCB(RBF(0.5), 0.1, TopK(3)),
    "OClokUCB, exact": lambda: OClokUCB(posterior=ExactPosterior(RBF(0.5), 0.1), oracle=TopK(3)),
    "OClokUCB, dictionary": lambda: OClokUCB(
        posterior=DictionaryPosterior(RBF(0.5), 0.1), oracle=TopK(3)
    ),
    "OClokUCB, Matérn, max_arms": lambda: OClokUCB(
        Matern([0.5, 0.8], nu=1.5), 0.2, TopK(4), max_arms=30
    ),
    "OClokUCB, sparse, random": lambda: OClokUCB(
        posterior=SparsePosterior(RBF(0.5), 0.1, 10, seed=1), oracle=TopK(3)
    ),
    "OClokUCB, sparse, greedy": lambda: OClokUCB(
        posterior=SparsePosterior(RBF(0.5), 0.1, 10, "greedy"), oracle=TopK(3)
    ),
    "ACCUCB": lambda: ACCUCB(horizon=60, dimension=2, oracle=TopK(3), seed=1),
    "CCMAB": lambda: CCMAB(horizon=60, dimension=2, oracle=TopK(3), seed=1),
    "CUCB": lambda: CUCB(dimension=2, cells=3, oracle=TopK(3), seed=1),
    "Random": lambda: Random(oracle=TopK(3), seed=1),
    "C2UCB": lambda: C2UCB(oracle=TopK(3)),
    "LinearThompson": lambda: LinearThompson(0.1, TopK(3), seed=1),
    "NeuralLinear": lambda: NeuralLinear(0.1, TopK(3), hidden=(8,), train_every=25, seed=1),
    "EpsilonGreedy": lambda: EpsilonGreedy(DecisionTreeRegressor(), 0.2, TopK(3), seed=1),
}


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_conforms(name: str) -> None:
    check_policy(POLICIES[name], arms=20, dimension=2, learns=name != "Random")


class Sleepwalker(OClokUCB):
    """Counts a round with every call of `index`."""

    def index(self, contexts: Any) -> Any:
        self.round += 1
        return super().index(contexts)


class Impulsive(Random):
    """Draws its indices from the generator that `index` shares with `select`."""

    def index(self, contexts: Any) -> Any:
        return self._score(np.asarray(contexts), self.round + 1, self._rng).index


class Other(OClokUCB):
    """Selects by another index than it shows."""

    def index(self, contexts: Any) -> Any:
        return super().index(contexts) + 1e-9


class Twice(Random):
    """Takes an outcome twice."""

    def update(self, decision: Any, outcomes: Any) -> None:
        with suppress(FeedbackError):
            super().update(decision, outcomes)


class Eager(OClokUCB):
    """Notes the outcomes before it looks at them."""

    def update(self, decision: Any, outcomes: Any) -> None:
        self.last = np.asarray(outcomes, dtype=float)
        super().update(decision, outcomes)


class Amnesiac(Random):
    """Loses its generator on the way to the file."""

    def _state(self) -> Any:
        return {**super()._state(), "_rng": np.random.default_rng(0)}


class Writable(Random):
    def select(self, contexts: Any, oracle: Any = None) -> Decision:
        decision = super().select(contexts, oracle)
        decision.index.flags.writeable = True
        return decision


class Half(OClokUCB):
    """Changes its state when the oracle refuses a round."""

    def select(self, contexts: Any, oracle: Any = None) -> Decision:
        self.tried = getattr(self, "tried", 0) + 1
        return super().select(contexts, oracle)


class Deaf(Random):
    """Forgets a decision as soon as any outcome of it came."""

    def update(self, decision: Any, outcomes: Any) -> None:
        super().update(decision, outcomes)
        if np.isfinite(outcomes).any() and decision.round in self._pending:
            self._pending.settle(decision)


class Keeper(Random):
    """Does not let go of a discarded decision."""

    def discard(self, decision: Any) -> None:
        self._pending.missing(decision, self.round)


class Counter(Random):
    def observe(self, contexts: Any, outcomes: Any) -> None:
        super().observe(contexts, outcomes)
        self.round += 1


class Idle(OClokUCB):
    """Takes outcomes and does nothing with them."""

    def _learn(self, contexts: Any, outcomes: Any) -> None:
        pass


class Secretary(Random):
    """Writes all outcomes down, and never looks at them."""

    def _learn(self, contexts: Any, outcomes: Any) -> None:
        self.notes = [*getattr(self, "notes", []), *outcomes.tolist()]


class Contrary(OClokUCB):
    """Learns the opposite of what it sees."""

    def _learn(self, contexts: Any, outcomes: Any) -> None:
        super()._learn(contexts, -outcomes)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Sleepwalker, "index changed the saved state"),
        (Impulsive, "index changed the saved state"),
        (Other, "select used another index"),
        (Twice, "must raise FeedbackError; nothing was raised"),
        (Eager, "must raise|changed the saved state"),
        (Amnesiac, "changed|decides otherwise|another file"),
        (Writable, "can be written to"),
        (Half, "changed the saved state"),
        (Deaf, "with missing outcomes is not pending"),
        (Keeper, "discard did not drop"),
        (Counter, "observe changed the round"),
        (Idle, "leave no trace in the state"),
        (Random, "leave no trace in the state"),
        (Secretary, "the index does not follow the outcomes"),
        (Contrary, "the index does not follow the outcomes"),
    ],
)
def test_the_suite_catches_a_policy_that(broken: type[Policy], message: str) -> None:
    settings: dict[str, Any] = (
        {"seed": 1} if issubclass(broken, Random) else {"kernel": RBF(0.5), "noise_std": 0.1}
    )
    with pytest.raises(AssertionError, match=message):
        check_policy(lambda: broken(oracle=TopK(3), **settings))
