"""Base arms that arrive in groups, each of which must be good enough to be chosen from.

| symbol | meaning                                                                 | shape  |
|--------|-------------------------------------------------------------------------|--------|
| X      | contexts, uniform in [0, 1]²                                            | (N, 2) |
| f      | mean reward outcomes: a sample of a Gaussian process at X               | (N,)   |
| f'     | mean group outcomes: another sample, independent of f                   | (N,)   |
| γ      | threshold: a group is good enough if its mean of f' is at least this    |        |

For example clients of a federated system: a base arm is a request to a client, f its worth, and f'
how well it keeps the client's privacy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial import cKDTree

from oclok.bench.problems.base import Count, Problem, Round, gaussian
from oclok.oracles import TopK
from oclok.posterior import ExactPosterior
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_count, as_positions, as_positive

#: A group is drawn from this many contexts around its centre.
NEIGHBOURS = 40

NOISE_STD = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupRound(Round):
    """A round whose base arms belong to groups.

    Attributes:
        groups: number of the group of each base arm, from 0 on; shape (M,).
        group_means: true mean group outcomes f'(x), which no policy sees; shape (M,).
        threshold: γ, the least mean of f' over the base arms of a good group.
    """

    groups: IntArray
    group_means: FloatArray
    threshold: float

    @property
    def is_good(self) -> BoolArray:
        """Whether each group is good enough, shape (G,)."""
        mean = np.bincount(self.groups, self.group_means) / np.bincount(self.groups)
        good: BoolArray = mean >= self.threshold
        return good

    def best(self) -> IntArray:
        """Return the best super arm out of groups that are good enough."""
        bad = np.flatnonzero(~self.is_good[self.groups])
        return self.oracle.given(exclude=bad)(self.means)

    def play_both(self, super_arm: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return reward outcomes, as `play` does, and group outcomes; shape (K, 2)."""
        rewards = self.play(super_arm, rng)
        chosen = as_positions(super_arm, "super_arm", len(self.means))
        return np.column_stack([rewards, self.noise(self.group_means, rng)[chosen]])

    def columns(self, super_arm: ArrayLike) -> dict[str, float]:
        """Return of how many groups `super_arm` has base arms, and how many are not good enough."""
        chosen = as_positions(super_arm, "super_arm", len(self.means))
        groups = np.unique(self.groups[chosen])
        violations = int(np.count_nonzero(~self.is_good[groups]))
        return {"groups_chosen": len(groups), "group_violations": violations}


class Groups(Problem):
    """Pick 5 base arms out of about 15 groups, half of which are not good enough.

    The base arms of a group have similar contexts. Every round has at least one group that is
    good enough.

    Args:
        lengthscale: l of the squared exponential kernel of f and f'.
        points: N, how many contexts there are to draw from.
        k: K, the number of base arms picked in a round.
        mean_groups: mean of the Poisson number of groups in a round.
        mean_arms: mean of the Poisson number of base arms in a group.

    Attributes:
        threshold: γ, the median of f'.

    Examples:
        >>> problem = Groups(rounds=3, points=200)
        >>> [arms.columns(arms.best())["group_violations"] for arms in problem]
        [0, 0, 0]
    """

    name = "groups"
    dimension = 2

    def __init__(
        self,
        rounds: int = 150,
        lengthscale: float = 0.5,
        seed: int | np.random.SeedSequence = 0,
        *,
        points: int = 1000,
        k: int = 5,
        mean_groups: float = 15,
        mean_arms: float = 6,
    ) -> None:
        super().__init__(rounds, seed)
        self.lengthscale = as_positive(lengthscale, "lengthscale")
        self.data_name = f"samples of a Gaussian process with lengthscale {self.lengthscale:g}"
        self._oracle = TopK(k)
        self._groups = Count(mean_groups, least=2)
        self._arms = Count(mean_arms, least=1)
        self._points = as_count(points, "points", least=NEIGHBOURS)

    @property
    def threshold(self) -> float:
        """γ, the median of f' at all contexts."""
        return float(np.median(self._sample()[1][:, 1]))

    def _round(self, seed: np.random.SeedSequence) -> GroupRound:
        X, means, neighbours = self._sample()
        rng = np.random.default_rng(seed)
        while True:
            arms, groups = self._arrivals(neighbours, rng)
            current = GroupRound(
                contexts=X[arms],
                means=means[arms, 0],
                oracle=self._oracle,
                noise=gaussian(NOISE_STD),
                groups=groups,
                group_means=means[arms, 1],
                threshold=self.threshold,
            )
            if current.is_good.any():
                return current

    def _arrivals(
        self, neighbours: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Return which contexts arrive, and in which group each of them does."""
        centres = rng.choice(self._points, self._groups.draw(rng))
        sizes = [min(self._arms.draw(rng), NEIGHBOURS) for _ in centres]
        pairs = zip(neighbours[centres], sizes, strict=True)
        arms = [rng.choice(near, size, replace=False) for near, size in pairs]
        return np.concatenate(arms), np.repeat(np.arange(len(sizes)), sizes)

    def _sample(self) -> tuple[FloatArray, FloatArray, IntArray]:
        return _sample(self._shared_state(), self.lengthscale, self._points)


@lru_cache(maxsize=32)
def _sample(
    state: tuple[int, ...], lengthscale: float, points: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return X (N, 2), f and f' as columns (N, 2), and the contexts nearest to each (N, n)."""
    from sklearn.gaussian_process.kernels import RBF

    rng = np.random.default_rng(np.random.SeedSequence(state))
    X = rng.random((points, 2))
    prior = ExactPosterior(RBF(lengthscale), NOISE_STD)
    means = np.column_stack([prior.sample(X, rng) for _ in range(2)])
    return X, means, cKDTree(X).query(X, NEIGHBOURS)[1]
