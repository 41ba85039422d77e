from __future__ import annotations

import numpy as np

from oclok.agent.schema import Schema
from oclok.agent.watch import FeatureWatch
from oclok.persistence import dumps, loads

SCHEMA = Schema(
    {
        "x": {"kind": "number", "mean": 0, "scale": 1, "missing": False},
        "kind": {"kind": "category", "values": ["a", "b"], "buckets": 4, "missing": False},
        "y": {"kind": "number", "mean": 0, "scale": 1},
    }
)


def contexts(count: int, x: float = 1.0, others: float = 0.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.zeros((count, SCHEMA.dimension))
    X[:, 0] = x * rng.random(count)
    new = rng.random(count) < others
    X[np.arange(count), np.where(new, rng.integers(3, 5, count), rng.integers(1, 3, count))] = 1
    X[new, 5] = 1
    return X


def test_features_that_never_vary_are_told() -> None:
    watch = FeatureWatch(SCHEMA.dimension)
    watch.record(contexts(100))
    assert watch.constant(SCHEMA) == ["y"]


def test_the_share_outside_of_the_first_range_follows_what_comes() -> None:
    watch = FeatureWatch(SCHEMA.dimension)
    for seed in range(20):
        watch.record(contexts(100, seed=seed))
    assert watch.moved(SCHEMA) == {"x": 0.0, "y": 0.0}
    for seed in range(100):
        watch.record(contexts(100, x=5.0, seed=seed))
    share = np.mean(np.random.default_rng(0).random(10_000) * 5 > 1.25)
    assert abs(watch.moved(SCHEMA)["x"] - share) < 0.05
    for seed in range(100):
        watch = loads(dumps(watch))  # type: ignore[assignment]
        watch.record(contexts(100, seed=seed))
    assert watch.moved(SCHEMA)["x"] < 0.02


def test_the_share_of_values_without_a_column_is_told() -> None:
    watch = FeatureWatch(SCHEMA.dimension)
    for seed in range(20):
        watch.record(contexts(100, seed=seed))
    assert watch.unknown(SCHEMA) == {"kind": 0.0}
    for seed in range(100):
        watch.record(contexts(100, others=0.3, seed=seed))
    assert abs(watch.unknown(SCHEMA)["kind"] - 0.3) < 0.1
