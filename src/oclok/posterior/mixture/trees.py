"""Extra trees (Geurts, Ernst and Wehenkel 2006) that are renewed one at a time.

Every update grows one tree on all outcomes, in place of the oldest; in between, outcomes move the
means of the leaves that they fall into. All trees are in one set of arrays, so that all arms go
down all trees together.
"""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

import numpy as np

from oclok.persistence import Persistent
from oclok.posterior.mixture.columns import ColumnMap
from oclok.typing import FloatArray, IntArray

#: Trees of a full forest.
TREES = 20
#: Outcomes that a tree looks at; more are drawn from uniformly.
MOST = 1_000
#: Columns that a split chooses from, of those that vary, and the fewest outcomes of a leaf.
COLUMNS, LEAF = 40, 2


class ExtraTrees(Persistent):
    """Trees that predict the mean outcome of the leaves that a context falls into.

    Args:
        seed: of the thresholds, and of the choice among outcomes and columns.
    """

    _transient = ("_starts", "_next", "_columns", "_U")

    def __init__(self, seed: int) -> None:
        _sklearn()  # imported now: an update has no time for it
        self._rng = np.random.default_rng(seed)
        self._oldest = 0
        self._sizes: IntArray = np.empty(0, dtype=np.intp)
        self._column: IntArray = np.empty(0, dtype=np.intp)
        self._threshold: FloatArray = np.empty(0)
        self._children: IntArray = np.empty((0, 2), dtype=np.intp)  # within the tree
        self._mean: FloatArray = np.empty(0)
        self._count: FloatArray = np.empty(0)
        self._depths: IntArray = np.empty(0, dtype=np.intp)
        self._columns: ColumnMap | None = None
        self._U: Any = None  # contexts of the first outcomes, mapped by these columns
        self._renew()

    def __len__(self) -> int:
        """Return the number of trees."""
        return len(self._sizes)

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the mean over trees, shape (M,), at contexts X (M, D)."""
        return np.asarray(self._mean[self._leaves(X)].mean(axis=0))

    def learn(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Move the means of the leaves that outcomes y (N,) at X (N, D) fall into."""
        for leaves, outcome, weight in zip(self._leaves(X).T, y, weights, strict=True):
            self._count[leaves] += weight
            self._mean[leaves] += weight * (outcome - self._mean[leaves]) / self._count[leaves]

    def correct(self, X: FloatArray, change: FloatArray, weights: FloatArray) -> None:
        """Add `change` (N,) to outcomes learned at X (N, D)."""
        for leaves, amount in zip(self._leaves(X).T, change * weights, strict=True):
            self._mean[leaves] += amount / self._count[leaves]

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes by `rate`."""
        self._count *= rate

    def grow(self, columns: ColumnMap, X: FloatArray, y: FloatArray, weights: FloatArray) -> bool:
        """Grow a tree on outcomes y (N,) at X (N, D); it takes the oldest one's place.

        Returns:
            Whether there is a column to split by.
        """
        if not len(columns.active):
            return False
        if len(y) > MOST:
            rows = self._rng.choice(len(y), MOST, replace=False)
            X, y, weights = X[rows], y[rows], weights[rows]
            U = columns.apply(X).astype(np.float32)
        else:
            U = self._mapped(columns, X)
        made = _sklearn()[0](
            max_features=min(COLUMNS, len(columns.active)),
            min_samples_leaf=LEAF,
            random_state=int(self._rng.integers(2**31)),
        )
        with _sklearn()[1](skip_parameter_validation=True):  # which takes longer than the tree
            tree = made.fit(U, y, weights, check_input=False).tree_
        is_inner = tree.feature >= 0
        column = np.where(is_inner, tree.feature, 0)
        threshold = np.full(len(column), np.inf)
        threshold[is_inner] = columns.undo(column[is_inner], tree.threshold[is_inner])
        here = np.arange(len(column))
        left = np.where(is_inner, tree.children_left, here)
        right = np.where(is_inner, tree.children_right, here)
        new = {
            "_column": columns.active[column],
            "_threshold": threshold,
            "_children": np.column_stack([left, right]),
            "_mean": tree.value[:, 0, 0],
            "_count": tree.weighted_n_node_samples,
        }
        full = len(self) >= TREES
        start = self._starts[self._oldest] if full else len(self._mean)
        stop = start + self._sizes[self._oldest] if full else start
        for name, values in new.items():
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old[:start], values, old[stop:]]))
        if full:
            self._sizes[self._oldest], self._depths[self._oldest] = len(column), tree.max_depth
        else:
            self._sizes = np.append(self._sizes, len(column))
            self._depths = np.append(self._depths, tree.max_depth)
        self._oldest = (self._oldest + 1) % TREES if full else 0
        self._renew()
        return True

    def _mapped(self, columns: ColumnMap, X: FloatArray) -> Any:
        """Return X (N, D) mapped, in single precision; all but new rows are at hand."""
        if self._columns is not columns or len(self._U) > len(X):
            self._columns, self._U = columns, np.empty((0, len(columns.active)), np.float32)
        new = columns.apply(X[len(self._U) :]).astype(np.float32)
        self._U = np.concatenate([self._U, new])
        return self._U

    def _leaves(self, X: FloatArray) -> IntArray:
        """Return the leaf of each tree, shape (trees, M), that X (M, D) falls into."""
        M, D = X.shape
        flat = np.ascontiguousarray(X).ravel()
        rows = np.tile(np.arange(M) * D, len(self))
        node = np.repeat(self._starts, M)
        for _ in range(int(self._depths.max(initial=0))):
            goes_right = flat[rows + self._column[node]] > self._threshold[node]
            node = self._next[2 * node + goes_right]
        return node.reshape(len(self), M)

    def _renew(self) -> None:
        """Compute where trees start, and children by their place in the arrays."""
        self._starts: IntArray = np.cumsum(self._sizes) - self._sizes
        self._next: IntArray = (
            self._children + np.repeat(self._starts, self._sizes)[:, None]
        ).ravel()

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._renew()


@cache
def _sklearn() -> tuple[Any, Any]:
    from sklearn import config_context  # half a second that `import oclok` need not take
    from sklearn.tree import ExtraTreeRegressor

    gc.collect()  # due after these imports: now, not in the middle of a round
    return ExtraTreeRegressor, config_context
