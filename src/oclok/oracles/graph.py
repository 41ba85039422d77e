"""Bipartite graphs given by their edges: checks, and nodes numbered from 0 on."""

from __future__ import annotations

import numpy as np

from oclok.errors import InputError
from oclok.typing import ArrayLike, IntArray


def as_edges(left: ArrayLike, right: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the end nodes of edges as two integer arrays of the same shape (M,)."""
    ends = []
    for name, nodes in (("left", left), ("right", right)):
        array = np.asarray(nodes)
        if array.size == 0:
            array = array.astype(np.intp)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise InputError(
                f"{name} must be a 1-D array of integers, one node per base arm; "
                f"got shape {array.shape}, dtype {array.dtype}"
            )
        ends.append(array)
    if ends[0].size != ends[1].size:
        raise InputError(
            "left and right must have one node per base arm each; "
            f"got {ends[0].size} and {ends[1].size}"
        )
    return ends[0], ends[1]


def number_nodes(nodes: IntArray) -> tuple[IntArray, int]:
    """Return the nodes as numbers 0, 1, … by first appearance, shape (M,), and how many."""
    if nodes.size == 0:
        return np.zeros(0, dtype=np.intp), 0
    least, span = int(nodes.min()), int(nodes.max()) - int(nodes.min())
    if span <= 4 * nodes.size + 1024:  # a table of all labels is faster than sorting them
        wide = nodes if nodes.dtype == np.uint64 else nodes.astype(np.int64)
        label = (wide - least).astype(np.intp)
    else:
        label = np.unique(nodes, return_inverse=True)[1]
        span = int(label.max())
    position = np.arange(nodes.size)
    first = np.empty(span + 1, dtype=np.intp)
    first[label[::-1]] = position[::-1]  # of repeated labels the last assignment stays
    first = first[label]
    number = np.cumsum(first == position) - 1
    return number[first], int(number[-1]) + 1


def has_repeats(keys: IntArray, bound: int) -> bool:
    """Return whether any of `keys`, integers from 0 up to below `bound`, occurs twice."""
    if bound <= 16 * keys.size:
        return bool(np.bincount(keys).max(initial=0) > 1)
    return bool(np.unique(keys).size < keys.size)
