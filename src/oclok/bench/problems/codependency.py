"""Simulation II of the paper: how much base arms tell of each other is a dial.

| symbol | meaning                                             | shape  |
|--------|-----------------------------------------------------|--------|
| X      | contexts, uniform in [0, 1]³                        | (N, 3) |
| K      | exp(-‖x - x'‖² / 2l²) at each pair of contexts      | (N, N) |
| L      | Cholesky factor of K + jitter                       | (N, N) |
| f      | L z with standard normal z: a sample of the GP at X | (N,)   |
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import cholesky
from scipy.spatial.distance import cdist

from oclok.bench.problems.base import Count, Problem, Round, gaussian
from oclok.oracles import TopK
from oclok.typing import FloatArray
from oclok.validation import as_count, as_positive

#: Added to the diagonal of K, which is singular in float64 from l = 0.2 on. It moves f by 1e-5, a
#: ten-thousandth of the noise.
JITTER = 1e-10

_NOISE = gaussian(0.1)


class Codependency(Problem):
    """Pick 5 of about 100 base arms whose mean outcomes are one sample of a Gaussian process.

    The paper draws contexts and mean outcomes once, at 6,000 points, and the base arms of each
    round from these.

    Args:
        lengthscale: l of the squared exponential kernel; the longer, the more arms tell of
            each other. Contexts are the same for every lengthscale.
        points: how many contexts there are to draw from.
        k: K, the number of base arms picked in a round.
        mean_arms: mean of the Poisson number of base arms, drawn again until above K;
            all `points` where it exceeds them.

    Examples:
        >>> problem = Codependency(rounds=2, lengthscale=1.0, points=500)
        >>> [arms.contexts.shape[1] for arms in problem]
        [3, 3]
    """

    name = "codependency"
    dimension = 3

    def __init__(
        self,
        rounds: int = 300,
        lengthscale: float = 0.5,
        seed: int | np.random.SeedSequence = 0,
        *,
        points: int = 6000,
        k: int = 5,
        mean_arms: float = 100,
    ) -> None:
        super().__init__(rounds, seed)
        self.lengthscale = as_positive(lengthscale, "lengthscale")
        self.data_name = f"a sample of a Gaussian process with lengthscale {self.lengthscale:g}"
        self._oracle = TopK(k)
        self._arms = Count(mean_arms, least=k + 1)
        self._points = as_count(points, "points", least=k + 1)

    def _round(self, seed: np.random.SeedSequence) -> Round:
        contexts, means = _gp_sample(self._shared_state(), self.lengthscale, self._points)
        rng = np.random.default_rng(seed)
        count = min(self._arms.draw(rng), self._points)
        arms = rng.choice(self._points, count, replace=False)
        return Round(contexts[arms], means[arms], self._oracle, _NOISE)


@lru_cache(maxsize=32)
def _gp_sample(
    state: tuple[int, ...], lengthscale: float, points: int
) -> tuple[FloatArray, FloatArray]:
    """Return X (N, 3) and f (N,); kept, as it takes seconds and every policy needs the same."""
    rng = np.random.default_rng(np.random.SeedSequence(state))
    X = rng.random((points, 3))
    K = cdist(X, X, "sqeuclidean")
    K *= -0.5 / lengthscale**2
    np.exp(K, out=K)
    K[np.diag_indices(points)] += JITTER
    # The lower factor of Kᵀ = K in Fortran order, in place: no second matrix of 288 MB.
    L = cholesky(K.T, lower=True, overwrite_a=True, check_finite=False)
    return X, L @ rng.standard_normal(points)
