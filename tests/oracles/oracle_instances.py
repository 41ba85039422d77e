"""Small random oracles of every kind, and exact enumeration as their judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain, combinations

import numpy as np

from oclok.errors import OracleError
from oclok.oracles import (
    Coverage,
    Knapsack,
    Matching,
    Oracle,
    Partition,
    Path,
    Program,
    TIMPlus,
    TopK,
)

#: Makes an oracle for the given number of base arms.
Maker = Callable[[np.random.Generator, int], Oracle]


def nearly_integers(rng: np.random.Generator, low: int, high: int, shape: object) -> np.ndarray:
    """Return integers, of which some are off by up to 1e-6."""
    off = rng.choice([0.0, 0.0, 1e-6, -1e-6, 1e-6 * rng.uniform(-1, 1)], shape)
    return rng.integers(low, high, shape) + off


def _program(rng: np.random.Generator, arms: int) -> Oracle:
    rows = int(rng.integers(1, 4))
    upper = nearly_integers(rng, 0, 8, rows)
    lower = np.where(rng.random(rows) < 0.6, -np.inf, upper - rng.integers(0, 4, rows))
    return Program(nearly_integers(rng, -3, 6, (rows, arms)), lower, upper)


def _path(rng: np.random.Generator, arms: int) -> Oracle:
    ends = np.sort([rng.choice(5, 2, replace=False) for _ in range(arms)], axis=1)
    ends[0] = 0, int(rng.integers(1, 5))
    return Path(ends[:, 0], ends[:, 1], 0, 4)


def _matching(rng: np.random.Generator, arms: int) -> Oracle:
    left, right = rng.integers(0, 4, (2, arms))
    k = [None, 1, 2][int(rng.integers(3))]
    return Matching(left, right, k, at_most=k is not None and bool(rng.random() < 0.5))


SUMS: dict[str, Maker] = {
    "TopK": lambda rng, arms: TopK(int(rng.integers(1, arms + 2))),
    "Partition": lambda rng, arms: Partition(rng.integers(0, 3, arms), int(rng.integers(0, 3))),
    "Knapsack": lambda rng, arms: Knapsack(nearly_integers(rng, 1, 6, arms), rng.integers(1, 12)),
    "Matching": _matching,
    "Path": _path,
    "Program": _program,
}

COVERAGES: dict[str, Maker] = {
    "exact": lambda rng, arms: Coverage(*rng.integers(0, 5, (2, arms)), int(rng.integers(1, 5))),
    "greedy": lambda rng, arms: Coverage(
        *rng.integers(0, 5, (2, arms)), int(rng.integers(1, 4)), solver="greedy"
    ),
    "TIMPlus": lambda rng, arms: TIMPlus(
        *rng.integers(0, 4, (2, arms)), int(rng.integers(1, 3)), epsilon=0.5
    ),
}


def subsets(arms: int) -> Iterator[tuple[int, ...]]:
    """Return all sets of base arms."""
    return chain.from_iterable(combinations(range(arms), size) for size in range(arms + 1))


def feasible_sets(oracle: Oracle, arms: int) -> list[tuple[int, ...]]:
    """Return the feasible super arms; of `TopK`, which takes any number, those of `arms` arms."""
    found = [s for s in subsets(arms) if oracle.is_feasible(s)]
    return [s for s in found if len(s) == min(oracle.k, arms)] if _is_top_k(oracle) else found


def exact_sum(numbers: np.ndarray, positions: object) -> Fraction:
    """Return the sum of some of `numbers` in exact arithmetic."""
    return sum((Fraction(numbers[m]) for m in positions), Fraction(0))


def answer(oracle: Oracle, index: np.ndarray) -> tuple[int, ...] | None:
    """Return the super arm chosen for `index`; None if the oracle raises an `OracleError`."""
    try:
        return tuple(oracle(index).tolist())
    except OracleError:
        return None


def _is_top_k(oracle: Oracle) -> bool:
    return isinstance(oracle, TopK)
