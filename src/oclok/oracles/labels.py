"""Labels of nodes and groups, one per base arm: checks, and numbers 0, 1, … in their place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np

from oclok.errors import InputError
from oclok.typing import ArrayLike, FloatArray, IntArray

#: Labels of nodes: an array of integers, or a list of strings and integers.
Labels: TypeAlias = IntArray | list[Hashable]


def as_ends(**ends: ArrayLike | str) -> tuple[Labels | str, ...]:
    """Return copies of the nodes at which base arms end; a `str` is a column's name and stays."""
    result = tuple(_as_nodes(nodes, name) for name, nodes in ends.items())
    sizes = [len(nodes) for nodes in result if not isinstance(nodes, str)]
    if len(set(sizes)) > 1:
        raise InputError(
            f"{' and '.join(ends)} must have one node per base arm each; "
            f"got {' and '.join(map(str, sizes))}"
        )
    return result


def _as_nodes(nodes: ArrayLike | str, name: str) -> Labels | str:
    if isinstance(nodes, str):
        return nodes
    # Without `object` NumPy turns integers among strings into strings.
    is_mixed = isinstance(nodes, list | tuple) and any(isinstance(node, str) for node in nodes)
    array = np.asarray(nodes, dtype=object) if is_mixed else np.asarray(nodes)
    wanted = f"{name} must be integers or strings, one node per base arm"
    if array.ndim != 1:
        raise InputError(f"{wanted}; got shape {array.shape}, dtype {array.dtype}")
    if array.size == 0:
        return np.empty(0, dtype=np.intp)
    if array.dtype.kind in "iu":
        return array.copy()
    labels: list[Hashable] = array.tolist()
    for position, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise InputError(f"{wanted}; position {position} is {label!r}")
    return labels


def as_node(node: object, name: str) -> str | int:
    """Return the label of one node."""
    if isinstance(node, str | int | np.integer) and not isinstance(node, bool):
        return node if isinstance(node, str) else int(node)
    raise InputError(f"{name} must be an integer or a string, the label of a node; got {node!r}")


def number_labels(labels: Labels | Sequence[Hashable]) -> tuple[IntArray, int]:
    """Return the labels as numbers 0, 1, … by first appearance, shape (M,), and how many."""
    if isinstance(labels, np.ndarray):
        return _number_integers(labels)
    number: dict[Any, int] = {}
    numbers = [number.setdefault(label, len(number)) for label in labels]
    return np.array(numbers, dtype=np.intp), len(number)


def _number_integers(labels: IntArray) -> tuple[IntArray, int]:
    if labels.size == 0:
        return np.zeros(0, dtype=np.intp), 0
    least, span = int(labels.min()), int(labels.max()) - int(labels.min())
    if span <= 4 * labels.size + 1024:  # a table of all labels is faster than sorting them
        wide = labels if labels.dtype == np.uint64 else labels.astype(np.int64)
        label = (wide - least).astype(np.intp)
    else:
        label = np.unique(labels, return_inverse=True)[1]
        span = int(label.max())
    position = np.arange(labels.size)
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


def best_parallels(edges: IntArray, pair: IntArray, index: FloatArray) -> IntArray:
    """Return the best of the `edges` of each `pair` of nodes, in order of the pairs.

    That is the one of the largest index, and of equals the one at the lower position.
    """
    order = np.lexsort((edges, -index[edges], pair))
    best: IntArray = edges[order[np.diff(pair[order], prepend=-1) != 0]]
    return best
