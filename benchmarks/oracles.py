"""Oracles at the paper's sizes and at a hundred times as many base arms; Coverage against TIM+."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.report import Result, Row, Target, say
from benchmarks.timing import interleaved
from oclok.bench import Movies
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

#: Left nodes to choose, as in Simulation III.
K = 3
EXACT, GREEDY, TIM = "Coverage, exact, k = 3", "Coverage, greedy, k = 3", "TIM+, k = 3, ε = 0.1"


def run(quick: bool) -> Result:
    rows: list[Row] = []
    for scale in (1,) if quick else (1, 100):
        say(f"oracles: {scale} times the paper's sizes")
        rows += _plain(100 * scale, repeats=5 if quick or scale > 1 else 50)
        rows += _coverage(scale, graphs=3 if quick or scale > 1 else 20)
    exact, tim = (next(row for row in rows if row["oracle"] == name) for name in (EXACT, TIM))
    targets = [
        Target("Coverage, times as fast as TIM+", 100, tim["ms"] / exact["ms"]),
        Target("TIM+'s best value over Coverage's", 1, tim["highest value"], at_most=True),
    ]
    notes = (
        "ms is one call, the median over turns of at least 5 ms each. Value is that of the chosen "
        "super arm as a share of the exact one's. Graphs are rounds of Simulation III, and random "
        "ones with 100 times the edges."
    )
    return Result("Oracles", rows, targets, notes)


def _plain(arms: int, repeats: int) -> list[Row]:
    """Measure the oracles whose reward is a sum, on `arms` base arms."""
    rng = np.random.default_rng(0)
    index = rng.standard_normal(arms) + 1.0
    costs = rng.integers(1, 21, arms)
    oracles: dict[str, Oracle] = {
        "TopK(5)": TopK(5),
        "Partition, groups of 10, 2 each": Partition(np.arange(arms) // 10, 2),
        "Knapsack, a tenth of all costs": Knapsack(
            costs := rng.integers(1, 21, arms), costs.sum() // 10
        ),
        "Matching, k = 5": _matching(arms),
        "Path": _path(arms),
        "Program, at most 5, one of each 10": _program(arms),
    }
    calls = {name: _call(oracle, index[: oracle.size]) for name, oracle in oracles.items()}
    taken = interleaved(calls, repeats)
    return [
        {
            "oracle": name,
            "base arms": oracle.size or arms,
            "ms": 1e3 * taken[name],
            "lowest value": "exact",
            "highest value": "exact",
        }
        for name, oracle in oracles.items()
    ]


def _matching(arms: int) -> Matching:
    """Return all pairs of 5 resources and arms / 5 users."""
    users, resources = np.divmod(np.arange(arms), 5)
    return Matching(users, resources, k=5)


def _path(arms: int) -> Path:
    """Return layers of 5 nodes with all edges from a layer to the next."""
    layers = max((arms - 10) // 25, 1)
    step, pair = np.divmod(np.arange(25 * layers), 25)
    nodes = np.arange(5)
    tail = np.concatenate([np.full(5, -1), 5 * step + pair // 5, 5 * layers + nodes])
    head = np.concatenate([nodes, 5 * (step + 1) + pair % 5, np.full(5, -2)])
    return Path(tail, head, source=-1, target=-2)


def _program(arms: int) -> Program:
    A = np.vstack([np.ones(arms), np.arange(arms) // 10 == np.arange(arms // 10)[:, None]])
    return Program(A, lower=-np.inf, upper=np.append(5.0, np.ones(arms // 10)))


def _coverage(scale: int, graphs: int) -> list[Row]:
    """Measure the solvers of coverage; `scale` is that of the number of edges."""
    taken: dict[str, list[float]] = {}
    value: dict[str, list[float]] = {}
    edges = []
    for seed, (left, right, p) in enumerate(_graphs(scale, graphs)):
        best = Coverage(left, right, K)
        oracles = {
            EXACT: best,
            GREEDY: Coverage(left, right, K, solver="greedy"),
            TIM: TIMPlus(left, right, K, seed=seed),
        }
        edges.append(left.size)
        optimum = best.value(p, best(p))
        calls = {name: _call(oracle, p) for name, oracle in oracles.items()}
        for name, median in interleaved(calls, 3).items():
            taken.setdefault(name, []).append(median)
            reached = best.value(p, oracles[name](p)) / optimum
            value.setdefault(name, []).append(round(reached, 9))
    return [
        {
            "oracle": name,
            "base arms": int(np.median(edges)),
            "ms": 1e3 * float(np.median(taken[name])),
            "lowest value": min(value[name]),
            "highest value": max(value[name]),
        }
        for name in taken
    ]


def _graphs(scale: int, count: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield ends and probabilities of edges: rounds of Simulation III, or larger random graphs."""
    if scale == 1:
        for now in Movies(rounds=count, seed=0):
            yield now.exact.left, now.exact.right, now.means
        return
    n, m, edges = 75 * round(scale**0.5), 200 * round(scale**0.5), 1_500 * scale
    for seed in range(count):
        rng = np.random.default_rng(seed)
        left, right = np.divmod(np.sort(rng.choice(n * m, edges, replace=False)), m)
        yield left, right, np.tanh(2 * rng.beta(2, 5, edges))


def _call(oracle: Oracle, index: np.ndarray) -> Callable[[], object]:
    return lambda: oracle(index)
