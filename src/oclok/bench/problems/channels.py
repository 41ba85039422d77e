"""Give radio channels to users: the paper's example of dynamic bipartite matching.

| symbol | meaning                                                                       | range   |
|--------|-------------------------------------------------------------------------------|---------|
| x¹     | distance of the user from the base station                                    | [0, 1)  |
| x²     | frequency of the channel                                                      | [0, 1]  |
| x³     | interference that the user has on the channel                                 | [0, 1)  |
| s(x)   | 20 exp(-3 x¹ (½ + x²)) / (1 + 4 x³): signal over noise; high frequencies fade | (0, 20] |
| f(x)   | log(1 + s(x)) / log(21): Shannon's rate over the best there is                | (0, 1]  |
| U(r)   | Σ r                                                                           |         |
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from oclok.bench.problems.base import Count, Problem, Round, gaussian
from oclok.oracles import Matching
from oclok.typing import BoolArray, FloatArray
from oclok.validation import as_count

_BEST_SNR = 20.0
_NOISE = gaussian(0.1)


class Channels(Problem):
    """Match each of 5 channels to one of about 20 users, so that the sum of rates is large.

    A base arm is an edge between a user and a channel that the user's device has; it lacks
    each with probability 0.2. Users are uniform on the disc around the base station.

    Args:
        k: K, the number of channels, all of which are given away.
        mean_users: mean of the Poisson number of users, drawn again until it is K or more.

    Examples:
        >>> first = next(iter(Channels()))
        >>> len(first.oracle(first.means))
        5
    """

    name = "channels"
    dimension = 3
    data_name = "synthetic users and channels"

    def __init__(
        self,
        rounds: int = 300,
        seed: int | np.random.SeedSequence = 0,
        *,
        k: int = 5,
        mean_users: float = 20,
    ) -> None:
        super().__init__(rounds, seed)
        self._frequencies = np.linspace(0, 1, as_count(k, "k"))
        self._users = Count(mean_users, least=k)

    def _round(self, seed: np.random.SeedSequence) -> Round:
        rng = np.random.default_rng(seed)
        k = self._frequencies.size
        users = self._users.draw(rng)
        distances = np.sqrt(rng.random(users))
        left, right = np.nonzero(_edges(users, k, rng))
        features = [distances[left], self._frequencies[right], rng.random(left.size)]
        contexts = np.column_stack(features)
        return Round(contexts, mean_outcome(contexts), Matching(left, right, k), _NOISE)


def mean_outcome(contexts: FloatArray) -> FloatArray:
    """Return f, shape (M,), at `contexts`, shape (M, 3)."""
    distance, frequency, interference = contexts[:, 0], contexts[:, 1], contexts[:, 2]
    snr = _BEST_SNR * np.exp(-3 * distance * (0.5 + frequency)) / (1 + 4 * interference)
    rate: FloatArray = np.log1p(snr) / np.log1p(_BEST_SNR)
    return rate


def _edges(users: int, channels: int, rng: np.random.Generator) -> BoolArray:
    """Return which user has which channel, shape (users, channels); all can be matched."""
    while True:
        edges = rng.random((users, channels)) < 0.8
        matched = maximum_bipartite_matching(coo_array(edges).tocsr(), perm_type="row")
        if (matched >= 0).all():
            return edges
