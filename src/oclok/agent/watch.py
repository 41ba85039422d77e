"""What the features of the arms offered look like over time.

D        columns of numbers that features become         M   arms of a decision
low, high, (D,)    range of each column among the first REFERENCE arms
outside, (D,)      share of late arms outside of it, averaged with weights that decay
"""

from __future__ import annotations

import numpy as np

from oclok.agent.features import Category, Number, Vector
from oclok.agent.schema import Schema
from oclok.persistence import Persistent
from oclok.typing import FloatArray

#: So many first arms, at least, set the range of each column.
REFERENCE = 1_000
#: A value may be outside of that range by this share of its width.
TOLERANCE = 0.25
#: Weight of a decision's arms in the running share of those outside.
DECAY = 0.05


class FeatureWatch(Persistent):
    """Ranges of encoded features, and how often arms leave them.

    Attributes:
        arms: how many arms were seen.
        decisions: in how many decisions.
    """

    def __init__(self, dimension: int) -> None:
        self.arms = 0
        self.decisions = 0
        self.low = np.full(dimension, np.inf)
        self.high = np.full(dimension, -np.inf)
        self.outside = np.zeros(dimension)

    def record(self, contexts: FloatArray) -> None:
        """Note the arms of one decision, shape (M, D)."""
        low, high = contexts.min(axis=0), contexts.max(axis=0)
        if self.arms < REFERENCE:
            np.minimum(self.low, low, out=self.low)
            np.maximum(self.high, high, out=self.high)
        else:
            margin = TOLERANCE * (self.high - self.low)
            bottom, top = self.low - margin, self.high + margin
            share = np.zeros(len(low))
            for column in np.flatnonzero((low < bottom) | (high > top)).tolist():
                x = contexts[:, column]
                share[column] = np.mean((x < bottom[column]) | (x > top[column]))
            self.outside += DECAY * (share - self.outside)
        self.arms += len(contexts)
        self.decisions += 1

    def constant(self, schema: Schema) -> list[str]:
        """Return the features none of whose columns ever varied."""
        varies = self.high > self.low
        return [
            name
            for name, columns in schema.slices().items()
            if columns.stop > columns.start and not varies[columns].any()
        ]

    def moved(self, schema: Schema) -> dict[str, float]:
        """Return which share of late arms has a feature outside of its range."""
        return {
            name: float(self.outside[columns].max())
            for name, columns in schema.slices().items()
            if isinstance(schema.features[name], Number | Vector)
        }

    def unknown(self, schema: Schema) -> dict[str, float]:
        """Return which share of late arms has a value of a category that has no column."""
        shares = {}
        for name, columns in schema.slices().items():
            feature = schema.features[name]
            if isinstance(feature, Category) and feature.buckets:
                first = columns.start + len(feature.values or ())
                # A value without a column is in two buckets.
                buckets = self.outside[first : first + feature.buckets]
                shares[name] = float(buckets.sum()) / 2
        return shares
