"""What every problem is: a seeded sequence of rounds whose true means are known.

To add one, derive from `Problem` and write `_round`. Rounds are made one by one, which costs no
memory, and round t depends on the seed and t alone: a shorter problem is a longer one, truncated.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import (
    as_contexts,
    as_count,
    as_outcomes,
    as_positions,
    as_positive,
    as_vector,
)

#: Takes true means (M,) and a generator, returns outcomes (M,) with these means.
Noise = Callable[[FloatArray, np.random.Generator], FloatArray]


@dataclass(frozen=True, eq=False)
class Round:
    """One round of a problem. Arrays are checked and copied.

    Attributes:
        contexts: contexts of the available base arms; shape (M, D).
        means: their true mean outcomes f(x), which no policy sees; shape (M,).
        oracle: this round's feasible super arms, expected reward and solver.
        noise: makes outcomes of means.
        exact: an oracle that finds the best super arm; `oracle` itself where that one is exact,
            None where finding it is too expensive.
    """

    contexts: FloatArray
    means: FloatArray
    oracle: Oracle
    noise: Noise
    exact: Oracle | None = None

    def __post_init__(self) -> None:
        contexts = as_contexts(self.contexts)
        means = as_vector(self.means, "means", len(contexts)).copy()
        means.flags.writeable = False
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "means", means)
        for name, oracle in (("oracle", self.oracle), ("exact", self.exact)):
            if not isinstance(oracle, Oracle) and (name, oracle) != ("exact", None):
                raise InputError(
                    f"{name} must be an oclok.oracles.Oracle, such as TopK(5); got {oracle!r}"
                )
        if not callable(self.noise):
            raise InputError(
                "noise must be a function of means and a generator, such as gaussian(0.1); "
                f"got {self.noise!r}"
            )
        if self.exact is None and self.oracle.alpha == self.oracle.beta == 1.0:
            object.__setattr__(self, "exact", self.oracle)

    def play(self, super_arm: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return outcomes, shape (K,), of the base arms in `super_arm`, ascending positions.

        With the same generator, a base arm has the same outcome in whichever super arm.
        """
        chosen = as_positions(super_arm, "super_arm", len(self.means))
        return as_outcomes(self.noise(self.means, rng), len(self.means))[chosen]

    def reward(self, super_arm: ArrayLike, outcomes: ArrayLike) -> float:
        """Return U: u with the `outcomes`, shape (K,), of `super_arm` in the place of means."""
        chosen = as_positions(super_arm, "super_arm", len(self.means))
        seen = np.zeros(len(self.means))
        seen[chosen] = as_outcomes(outcomes, chosen.size)
        return self.oracle.value(seen, chosen)

    def best(self) -> IntArray:
        """Return the super arm that the round's own oracle finds given the true means."""
        return copy.deepcopy(self.oracle)(self.means)  # an oracle with a seed changes with use

    def columns(self, super_arm: ArrayLike) -> dict[str, float]:
        """Return further columns of the table of `simulate`, for rounds that measure more."""
        return {}


@dataclass(frozen=True)
class Count:
    """A Poisson number, drawn again until it is `least` or more."""

    mean: float
    least: int

    def __post_init__(self) -> None:
        if as_positive(self.mean, "mean number") < self.least:
            raise InputError(
                f"the mean number of nodes or base arms in a round must be at least {self.least}, "
                f"the fewest that a round may have; got {self.mean:g}"
            )

    def draw(self, rng: np.random.Generator) -> int:
        """Return a number for one round."""
        while (count := int(rng.poisson(self.mean))) < self.least:
            pass
        return count


class Problem(ABC):
    """A seeded sequence of rounds. Iterating again gives the same rounds again.

    Args:
        rounds: T, how many rounds there are. The first ones do not depend on it.
        seed: of all randomness.

    Attributes:
        name: of the problem; that of the class unless it says otherwise.
        data_name: of the data it runs on.
        notes: how the rounds differ from the definition, if they do.
        dimension: D, the number of columns of the contexts.
    """

    name: str
    dimension: int
    data_name: str = "synthetic data"
    notes: str = ""

    def __init__(self, rounds: int, seed: int | np.random.SeedSequence) -> None:
        self.rounds = as_count(rounds, "rounds")
        self._seed = fresh_seed(seed)
        if not hasattr(self, "name"):
            self.name = type(self).__name__

    def __len__(self) -> int:
        return self.rounds

    def __iter__(self) -> Iterator[Round]:
        _, rounds = self._seeds()
        for seed in rounds.spawn(self.rounds):
            yield self._round(seed)

    def __repr__(self) -> str:
        notes = f" ({self.notes})" if self.notes else ""
        what = f"{self.name} on {self.data_name}{notes}"
        return f"<{type(self).__name__}: {self.rounds} rounds of {what}>"

    @abstractmethod
    def _round(self, seed: np.random.SeedSequence) -> Round:
        """Make the round that belongs to `seed`."""

    def _seeds(self) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
        """Return the seeds of what all rounds share and of the rounds, the same every time."""
        shared, rounds = fresh_seed(self._seed).spawn(2)
        return shared, rounds

    def _shared_state(self) -> tuple[int, ...]:
        """Return the seed of what all rounds share in a form that can be a key of a cache."""
        return tuple(self._seeds()[0].generate_state(4).tolist())


def fresh_seed(seed: int | np.random.SeedSequence) -> np.random.SeedSequence:
    """Return a sequence for `seed` that has spawned none, so that it spawns the same each time."""
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
    return np.random.SeedSequence(as_count(seed, "seed", least=0))


def gaussian(noise_std: float) -> Noise:
    """Return noise that adds a normal deviate of standard deviation `noise_std`."""
    return partial(_gaussian, noise_std)


def bernoulli(means: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return outcomes that are 1 with probability `means` and 0 otherwise."""
    return (rng.random(means.size) < means).astype(np.float64)


def _gaussian(noise_std: float, means: FloatArray, rng: np.random.Generator) -> FloatArray:
    return means + noise_std * rng.standard_normal(means.size)
