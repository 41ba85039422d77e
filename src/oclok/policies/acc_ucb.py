"""ACC-UCB: confidence bounds on cells of the unit cube that are split where they are played.

Notation (Nika, Elahi and Tekin 2020):

    T       horizon                                   `horizon`
    N       children of a node that is split          `children`
    h       depth of a node, 0 for the root           `_depth`
    n, μ̂    outcomes seen in a node, their mean       `_count`, `_sum / _count`
    c(n)    confidence radius √(2 log T / n), c(0) = ∞
    v₁ρ^h   bound on how far f varies in a cell at depth h

Nodes are numbered as they are made, the root is 0; their data are in arrays with one entry per
node. The N children of a node are consecutive, from `_first_child` on; 0 there marks a leaf.
"""

from __future__ import annotations

import math

import numpy as np

from oclok.arrays import grown
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Policy
from oclok.policies.grid import check_unit_cube
from oclok.typing import FloatArray, IntArray, Seed
from oclok.validation import as_count, as_positive, as_probability

#: log₂ of the most children a node may have; one split then makes a million nodes.
LARGEST_CUT = 20


class ACCUCB(Policy):
    """ACC-UCB (Nika, Elahi and Tekin 2020): a tree of cells that grows finer where it matters.

    The index of a base arm in a leaf at depth h is (their Algorithm 1)

        min(μ̂ + c, parent's μ̂ + parent's c + v₁ρ^(h-1)) + v₁ρ^h + N (v₁/v₂) v₁ρ^h.

    Outcomes count for the leaf that their context lies in when they come. Each leaf that got
    some and now has c ≤ v₁ρ^h is split once; its children start without outcomes. A split into
    N = 2^j children halves j sides; the next depth halves the next j, and so on in turn. A context
    on the border of two cells belongs to the upper one. The tree has `nodes`, leaves and others; as
    long as the root is the only one, indices are random.

    Args:
        horizon: T, the number of rounds that will be played; it may be exceeded.
        dimension: D; contexts lie in the unit cube [0, 1]^D.
        v1: v₁; no context is further than v₁ρ^h from the centre of its cell at depth h. √D, the
            diameter of the cube, if left out.
        v2: v₂; centres of cells at depth h are at least v₂ρ^h apart.
        rho: ρ, by which cells shrink with each depth. ½ is right for N = 2^D, N^(-1/D) for any N.
        children: N, of which 2^D must be a power; 2^D if left out.
        seed: seed of the random indices in the first rounds.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = ACCUCB(horizon=100, dimension=1, oracle=TopK(1), seed=0)
        >>> policy.observe([[0.2], [0.9]] * 5, [0.1, 0.8] * 5)
        >>> policy.nodes
        3
        >>> policy.index([[0.2], [0.4], [0.9]])
        array([3.90970518, 3.90970518, 3.90970518])
        >>> policy.observe([[0.2]] * 9, [0.1] * 9)
        >>> policy.select([[0.2], [0.4], [0.9]]).super_arm
        array([2])
    """

    _is_random = True

    def __init__(
        self,
        horizon: int,
        dimension: int,
        v1: float | None = None,
        v2: float = 1.0,
        rho: float = 0.5,
        children: int | None = None,
        oracle: Oracle | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(oracle, seed)
        self.horizon = as_count(horizon, "horizon")
        self.dimension = self._dimension = as_count(dimension, "dimension")
        self.v1 = math.sqrt(self.dimension) if v1 is None else as_positive(v1, "v1")
        self.v2 = as_positive(v2, "v2")
        self.rho = as_probability(rho, "rho")
        self.children = _as_children(children, self.dimension)
        self.nodes = 1
        self._count = np.zeros(1, dtype=np.intp)
        self._sum = np.zeros(1)
        self._depth = np.zeros(1, dtype=np.intp)
        self._parent = np.zeros(1, dtype=np.intp)
        self._first_child = np.zeros(1, dtype=np.intp)

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        leaf = self._locate(contexts)
        if self.nodes == 1:
            return Belief(rng.random(len(contexts)))
        parent = self._parent[leaf]
        variation = self._variation(self._depth[leaf])
        bound = np.minimum(
            self._upper(leaf), self._upper(parent) + self._variation(self._depth[parent])
        )
        return Belief(bound + variation + self.children * (self.v1 / self.v2) * variation)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        leaf = self._locate(contexts)
        played, arms = np.unique(leaf, return_counts=True)
        confidence = self._confidence(self._count[played] + arms)
        split = played[confidence <= self._variation(self._depth[played])]
        self._reserve(self.nodes + split.size * self.children)
        np.add.at(self._count, leaf, 1)
        np.add.at(self._sum, leaf, outcomes)
        self._split(split)

    def _locate(self, contexts: FloatArray) -> IntArray:
        """Return the leaf, shape (M,), that each context (M, D) lies in."""
        check_unit_cube(contexts)
        cut = self.children.bit_length() - 1
        digit = 2 ** np.arange(cut)
        place = contexts  # in its cell, as if that were the unit cube
        node = np.zeros(len(contexts), dtype=np.intp)
        while self._first_child[node].any():
            upper = place >= 0.5
            place = 2 * place - upper  # exact in floats, so that no depth is too deep
            for child in (upper.reshape(-1, self.dimension // cut, cut) @ digit).T:
                first_child = self._first_child[node]
                node = np.where(first_child, first_child + child, node)
        return node

    def _split(self, nodes: IntArray) -> None:
        first = self.nodes + self.children * np.arange(nodes.size)
        made = slice(self.nodes, self.nodes + nodes.size * self.children)
        self._first_child[nodes] = first
        self._parent[made] = np.repeat(nodes, self.children)
        self._depth[made] = np.repeat(self._depth[nodes] + 1, self.children)
        self.nodes = made.stop

    def _reserve(self, nodes: int) -> None:
        for name in ("_count", "_sum", "_depth", "_parent", "_first_child"):
            setattr(self, name, grown(getattr(self, name), nodes))

    def _upper(self, node: IntArray) -> FloatArray:
        """Return μ̂ + c of each `node`."""
        count = self._count[node]
        return self._sum[node] / np.maximum(count, 1) + self._confidence(count)

    def _confidence(self, count: IntArray) -> FloatArray:
        radius = np.sqrt(2 * math.log(self.horizon) / np.maximum(count, 1))
        return np.where(count > 0, radius, np.inf)

    def _variation(self, depth: IntArray) -> FloatArray:
        return np.asarray(self.v1 * self.rho**depth)


def _as_children(children: int | None, dimension: int) -> int:
    """Return N: 2^j such that j sides at a time, in turn, halve all of them equally often."""
    count = 2**dimension if children is None else as_count(children, "children")
    allowed = [2**j for j in range(1, min(dimension, LARGEST_CUT) + 1) if dimension % j == 0]
    if count not in allowed:
        raise InputError(
            f"children must be one of {allowed} in dimension {dimension}: 2^{dimension} must be "
            f"a power of it, and it at most 2^{LARGEST_CUT}; got {count}"
        )
    return count
