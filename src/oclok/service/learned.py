"""What an agent has learned, by feature: how much each matters, and how outcomes depend on it.

Each feature of recently chosen arms is set to one value after the other, everything else as it is
(partial dependence). Its relevance is the share of the variance that this makes in what is
expected, among all features; its curve is the average over these arms.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from oclok.posterior import MixturePosterior
from oclok.service.answers import FeatureCurve, Kernel, Learned
from oclok.service.decisions import logged
from oclok.service.packing import records
from oclok.service.replica import Replica
from oclok.service.service import Service

#: Arms that features are varied of, decisions that these are taken from, and values per feature.
ARMS, DECISIONS, VALUES = 24, 12, 10
#: Features whose relevance is computed, and curves that are returned.
MOST_FEATURES, MOST_CURVES = 40, 12
#: It is computed again when the model has taken this many times the steps.
GROWTH = 1.1
#: Members of the model with less weight are left out.
LEAST_WEIGHT = 0.01

_known: WeakKeyDictionary[Replica, tuple[int, Learned]] = WeakKeyDictionary()


def version(replica: Replica) -> int:
    """Return after how many steps of learning `learned` was, or will be, computed; -1 if never."""
    if not replica.settings.get("explain", True):
        return -1
    steps = replica.learner.steps
    known = _known.get(replica)
    return steps if known is None or steps > GROWTH * known[0] else known[0]


def learned(service: Service, replica: Replica) -> Learned:
    """Return what the agent has learned, not always of this very moment."""
    steps = version(replica)
    if steps < 0:
        return Learned(features=[], kernels=[])
    known = _known.get(replica)
    if known is None or known[0] != steps:
        known = steps, Learned(features=_curves(service, replica), kernels=_kernels(replica))
        _known[replica] = known
    return known[1]


def _curves(service: Service, replica: Replica) -> list[FeatureCurve]:
    schema = replica.agent.schema
    arms = _recent(service, replica)
    counts = replica.agent.counts()
    known = sum(counts[word] for word in ("learned", "corrected", "defaulted", "observed"))
    if schema is None or not arms or not known:
        return []
    names = [name for name, feature in schema.features.items() if feature.width][:MOST_FEATURES]
    curves = [_curve(replica, arms, name) for name in names]
    total = sum(variance for variance, _ in curves) or 1.0
    for variance, curve in curves:
        curve.relevance = variance / total
    ranked = sorted((curve for _, curve in curves), key=lambda curve: -curve.relevance)
    return ranked[:MOST_CURVES]


def _curve(replica: Replica, arms: list[dict[str, Any]], name: str) -> tuple[float, FeatureCurve]:
    """Return the variance of the expected outcome that is due to a feature, and its curve."""
    values = _values([arm.get(name) for arm in arms])
    varied = {
        row * len(values) + column: {**arm, name: value}
        for row, arm in enumerate(arms)
        for column, value in enumerate(values)
    }
    X = replica.agent.encode(varied)
    with replica.learner.paused() as policy:
        mean, std = policy.posterior.predict(X)
    means, stds = mean.reshape(len(arms), -1), std.reshape(len(arms), -1)
    middle, width = means.mean(axis=0), 1.96 * stds.mean(axis=0)
    lower, middle, upper = (np.clip(middle + z * width, *replica.outcome_range) for z in (-1, 0, 1))
    shown = [value if not isinstance(value, list) else f"[{len(value)}]" for value in values]
    return float(means.var(axis=1).mean()), FeatureCurve(
        name=name,
        relevance=0.0,
        values=shown,
        mean=middle.tolist(),
        lower=lower.tolist(),
        upper=upper.tolist(),
    )


def _values(seen: list[Any]) -> list[Any]:
    """Return up to VALUES values of a feature: even quantiles of numbers, else the most common."""
    present = [value for value in seen if value is not None]
    if present and all(isinstance(v, int | float) and not isinstance(v, bool) for v in present):
        numbers = np.unique(np.quantile(present, np.linspace(0.02, 0.98, VALUES)))
        return [float(f"{x:.4g}") for x in numbers.tolist()]
    if any(isinstance(value, list) for value in present):
        return present[:VALUES]
    common = [value for value, _ in Counter(present).most_common(VALUES)]
    return sorted(common, key=str) or [None]


def _recent(service: Service, replica: Replica) -> list[dict[str, Any]]:
    """Return features of recently offered arms, evenly among the latest decisions."""
    events = service.log.latest_decisions(replica.id, 2**53, DECISIONS)
    offered = [arm["features"] for event in events for arm in records(logged(event))]
    return offered[:: max(1, math.ceil(len(offered) / ARMS))]


def _kernels(replica: Replica) -> list[Kernel]:
    with replica.learner.paused() as policy:
        posterior = policy.posterior
        if not isinstance(posterior, MixturePosterior):
            return []
        members = posterior.members
    return [
        Kernel(weight=weight, noise_std=math.sqrt(variance), kernel=str(kernel))
        for weight, kernel, variance in members
        if weight >= LEAST_WEIGHT
    ]
