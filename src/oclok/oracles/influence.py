"""TIM+ (Tang, Xiao and Shi, SIGMOD 2014): influence maximisation by reverse-reachable sets.

A reverse-reachable (RR) set holds the nodes that activate a random node, its root, in one random
draw of all edges. In a bipartite graph that is the root itself and, if the root is a right node
j, each left node i with probability p_ij. A node set S meets a share of all RR sets that is in
expectation its influence, divided by n.

| symbol    | meaning                                                                    |
|-----------|----------------------------------------------------------------------------|
| n         | number of nodes, left and right                                            |
| I(S)      | influence: expected number of active nodes, seeds included; k + u(S) here  |
| θ         | number of RR sets that make the estimates good enough: λ / KPT             |
| KPT       | a lower bound of the best influence, to be found first                     |
| κ(R)      | 1 - (1 - w(R)/M)^k, where w(R) is the number of edges that lead into R     |
| λ         | (8 + 2ε) n (ℓ log n + log C(n, k) + log 2) / ε²                            |
| ε', λ'    | 5 (ℓ ε² / (k + ℓ))^(1/3), and (2 + ε') ℓ n log n / ε'²                     |
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from oclok.errors import InputError, OracleError
from oclok.oracles.coverage import CoverageOracle
from oclok.oracles.parametric import Deadline
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_count, as_positive

#: Random numbers that are drawn at once, give or take those of one edge; 8 bytes each.
RANDOM_NUMBERS_PER_CHUNK = 2**21
#: Random numbers that one sample of RR sets may need; about 3 s of work and 2 GB.
LARGEST_DRAWS = 2**28


class TIMPlus(CoverageOracle):
    """Choose k left nodes of large expected coverage by TIM+, the oracle of the paper.

    `Coverage` solves the same problem exactly, and much faster where k is small; this one is
    here to repeat the paper's simulations and to compare with.

    (α, β) = (1 - 1/e - ε, 1 - 3n^-ℓ), where n counts the left and the right nodes. TIM+ proves
    this for the influence, which counts the seeds as well. As any k seeds add the same k, the
    best choice is the same; but I ≥ α·max I gives u ≥ α·max u - (1 - α) k, so that α holds for u
    itself only where the k seeds matter little. With nodes included or excluded the same holds,
    compared with the best of the choices that remain: greedy covers at least 1 - 1/e of what
    they can of the RR sets, and k, on which KPT rests, is a lower bound for any k left nodes.

    Args:
        left, right, k: as for `Coverage`.
        epsilon: ε, what the estimates may cost; below 1 - 1/e.
        ell: ℓ, the larger the smaller the probability of failure.
        seed: None draws the same random numbers in each call; with a seed they go on from call
            to call.
        time_limit: seconds that a call may take, else an `OracleError`; None for no limit. Calls
            that need more than 2²⁸ random numbers are refused with or without one.

    Examples:
        >>> oracle = TIMPlus(left=[0, 0, 1, 1, 2], right=[0, 1, 1, 2, 3], k=2)
        >>> oracle([0.9, 0.9, 0.9, 0.8, 0.95])
        array([0, 1, 4])
    """

    def __init__(
        self,
        left: ArrayLike | str,
        right: ArrayLike | str,
        k: int,
        epsilon: float = 0.1,
        ell: float = 1,
        seed: int | np.random.SeedSequence | None = None,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(left, right, k, time_limit)
        self.epsilon = as_positive(epsilon, "epsilon")
        self.ell = as_positive(ell, "ell")
        if self.alpha <= 0:
            raise InputError(f"epsilon must be below 1 - 1/e ≈ 0.632; got {epsilon!r}")
        if not (seed is None or isinstance(seed, np.random.SeedSequence)):
            seed = as_count(seed, "seed", least=0)
        self.seed = seed
        self._rng = None if seed is None else np.random.default_rng(seed)
        self.beta = 0.0  # unknown before the nodes are
        self._prepare_if_resolved()

    @property
    def alpha(self) -> float:
        """1 - 1/e - ε."""
        return 1.0 - 1.0 / math.e - self.epsilon

    def _prepare(self) -> None:
        super()._prepare()
        self.beta = max(0.0, 1.0 - 3.0 * max(1, self._n + self._m) ** -self.ell)

    def _choose(
        self, left: IntArray, right: IntArray, p: FloatArray, deadline: Deadline
    ) -> tuple[IntArray, float]:
        order = np.argsort(left, kind="stable")
        order = order[p[order] > 0]
        graph = _Graph(left[order], right[order], p[order], self._n, self._m, deadline)
        if graph.p.size == 0:
            return self._open[: self._room], 0.0
        rng = np.random.default_rng(0) if self._rng is None else self._rng
        n, k = self._n + self._m, self.k
        kpt = self._refine_kpt(graph, *self._estimate_kpt(graph, rng), rng)
        log_choices = float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
        trust = self.ell * math.log(n) + log_choices + math.log(2)
        lam = (8 + 2 * self.epsilon) * n * trust / self.epsilon**2
        return self._cover(graph.sample(math.ceil(lam / kpt), rng)), math.inf

    def _estimate_kpt(self, graph: _Graph, rng: np.random.Generator) -> tuple[float, IntArray]:
        """Return KPT* and k nodes that cover the last RR sets drawn for it (Algorithm 2).

        KPT is the mean influence of k random ends of edges. Those are right nodes here, whose
        influence is at most k, no more than that of any k left nodes.
        """
        n = graph.n + graph.m
        kappa = 1.0 - (1.0 - np.bincount(graph.right, minlength=graph.m) / graph.p.size) ** self.k
        kpt, roots = 1.0, np.zeros(graph.m, dtype=np.intp)
        for i in range(1, int(math.log2(n))):
            theta = math.ceil((6 * self.ell * math.log(n) + 6 * math.log(math.log2(n))) * 2**i)
            roots = graph.draw_roots(theta, rng)
            mean = float(roots @ kappa) / theta
            if mean > 2.0**-i:
                kpt = n * mean / 2
                break
        return kpt, self._cover(graph.sample_from(roots, rng))

    def _refine_kpt(
        self, graph: _Graph, kpt: float, nodes: IntArray, rng: np.random.Generator
    ) -> float:
        """Return KPT⁺, from fresh RR sets and the influence of `nodes` in them (Algorithm 3)."""
        n = graph.n + graph.m
        eps: float = 5 * (self.ell * self.epsilon**2 / (self.k + self.ell)) ** (1 / 3)
        theta = math.ceil((2 + eps) * self.ell * n * math.log(n) / eps**2 / kpt)
        seeds = np.append(nodes, self._is_included.nonzero()[0])
        met = np.count_nonzero(graph.sample(theta, rng).met_by(seeds))
        influence = self.k + n * met / theta
        return max(kpt, influence / (1 + eps))

    def _cover(self, rr: _RRSets) -> IntArray:
        """Return open nodes, each the one in most RR sets not met before (Algorithm 1)."""
        is_met = rr.met_by(self._is_included.nonzero()[0])
        nodes, candidates = np.empty(self._room, dtype=np.intp), self._open
        for step in range(self._room):
            running = np.append(0, np.cumsum(~is_met[rr.sets]))
            gains = np.diff(running[rr.starts])[candidates]
            nodes[step] = node = candidates[gains.argmax()]
            candidates = candidates[candidates != node]
            is_met[rr.of(node)] = True
        return nodes

    def _state(self) -> dict[str, Any]:
        state = {**super()._state(), "generator": self._rng}
        return {name: v for name, v in state.items() if not isinstance(v, np.random.SeedSequence)}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore({name: value for name, value in state.items() if name != "generator"})
        self._rng = state["generator"]


class _RRSets(NamedTuple):
    """RR sets with a right root, by the left nodes in them."""

    total: int
    sets: IntArray  # numbers of the sets that hold left node 0, then those of node 1, …
    starts: IntArray  # (n + 1,), where the sets of each left node start

    def of(self, node: np.intp) -> IntArray:
        return self.sets[self.starts[node] : self.starts[node + 1]]

    def met_by(self, nodes: IntArray) -> BoolArray:
        """Return which RR sets hold at least one of `nodes`."""
        is_met = np.zeros(self.total, dtype=bool)
        for node in nodes:
            is_met[self.of(node)] = True
        return is_met


class _Graph(NamedTuple):
    """Edges of positive probability in order of their left nodes; n left and m right nodes."""

    left: IntArray
    right: IntArray
    p: FloatArray
    n: int
    m: int
    deadline: Deadline

    def sample(self, theta: int, rng: np.random.Generator) -> _RRSets:
        return self.sample_from(self.draw_roots(theta, rng), rng)

    def draw_roots(self, theta: int, rng: np.random.Generator) -> IntArray:
        """Return how many of `theta` uniformly random roots are each right node, shape (m,).

        An RR set with a left root i is just {i}, and favours no left node over another. Such sets
        are counted by their mean, k in n for any k left nodes, and not drawn: the estimates keep
        their expectations and lose noise, so that the paper's bounds hold all the more.
        """
        total = self.n + self.m
        if theta * self.p.size > LARGEST_DRAWS * total:
            raise OracleError(
                f"TIM+ would need about {theta * self.p.size / total:.2g} random numbers; raise "
                "epsilon, or use Coverage"
            )
        share = np.append(np.full(self.m, 1.0 / total), self.n / total)
        return rng.multinomial(theta, share)[:-1]

    def sample_from(self, roots: IntArray, rng: np.random.Generator) -> _RRSets:
        """Draw the number of RR sets that `roots` gives for each right node."""
        draws = roots[self.right]
        ends = np.cumsum(draws)
        # An edge's draws stand side by side, one for each set of its right end.
        first_set = (np.cumsum(roots) - roots)[self.right]
        first_draw = ends - draws
        sets, sizes = [], np.zeros(self.n, dtype=np.intp)
        chunk = ends // RANDOM_NUMBERS_PER_CHUNK
        for edges in np.split(np.arange(draws.size), np.flatnonzero(np.diff(chunk)) + 1):
            if self.deadline.has_passed:
                raise OracleError(
                    f"TIM+ did not end within {self.deadline.seconds:g} s; raise time_limit or "
                    "epsilon, or use Coverage"
                )
            edge = np.repeat(edges, draws[edges])
            live = np.flatnonzero(rng.random(edge.size) < self.p[edge])
            edge = edge[live]
            sets.append(live + first_draw[edges[0]] + (first_set - first_draw)[edge])
            sizes += np.bincount(self.left[edge], minlength=self.n)
        starts = np.append(0, np.cumsum(sizes))
        return _RRSets(int(roots.sum()), np.concatenate(sets), starts)
