"""Outcomes that can be neighbours of a context: the latest, one slot per distinct context."""
# Tested in tests/posterior/dictionary/test_vecchia.py: through the model that uses them.

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from oclok.arrays import grown
from oclok.persistence import Persistent
from oclok.posterior.dictionary.forest import NONE, TREES, Forest
from oclok.typing import FloatArray, IntArray

#: Outcomes, and entries of their contexts, up to which an arm is compared with all of them: that
#: is as fast as the forest, whose neighbours are approximate.
MOST_TO_COMPARE, ENTRIES_TO_COMPARE = 4_096, 40_000
#: Outcomes that can be neighbours: the latest. It bounds the memory; w remembers all outcomes.
WINDOW = 32_768


class Neighbours(Persistent):
    """Outcomes, found by the nearness of their contexts.

    Attributes:
        X, phi: contexts and their features, a row per slot: (slots, D) and (slots, r).
        y, noise, residual: mean outcomes, their noise variances and ρ, each (slots,).
        size: slots in use. The row after them stands for "none", and so does -1.
    """

    def __init__(self, length_scale: FloatArray, dimension: int, rank: int) -> None:
        self._scale = length_scale
        self._forest = Forest(length_scale)
        self.X, self.phi = np.empty((0, dimension)), np.empty((0, rank))
        self.y, self.noise, self.residual = np.empty(0), np.empty(0), np.empty(0)
        self.size = self._next = 0
        self._slots: dict[int, int] = {}  # by a hash of the context

    def _state(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k not in ("phi", "_slots")}
        for name in _BY_SLOT[:-1]:
            state[name] = state[name][: self.size]
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._slots = {hash(x.tobytes()): slot for slot, x in enumerate(self.X)}

    def nearest(self, X: FloatArray, most: int, trees: int) -> IntArray:
        """Return the slots of the nearest outcomes of each context, padded with -1, (M, ≤ most)."""
        few = self.size <= MOST_TO_COMPARE and self.size * X.shape[1] <= ENTRIES_TO_COMPARE
        if trees == TREES and few:
            known = self.X[: self.size] / self._scale
            distance = cdist(X / self._scale, known, "sqeuclidean")
            most = min(most, self.size)
            return np.argpartition(distance, most - 1, axis=1)[:, :most]
        found = self._forest.candidates(X, trees)
        if trees > 1:  # of which several may find the same
            found.sort(axis=1)
            found[:, 1:][found[:, 1:] == found[:, :-1]] = NONE
        if most >= found.shape[1]:
            return found
        away = self.X[found]
        away -= X[:, None]
        if self._scale.ndim:
            away /= self._scale
        distance = np.einsum("mcd,mcd->mc", away, away)
        distance[found == NONE] = np.inf
        nearest = np.argpartition(distance, most - 1, axis=1)[:, :most]
        return np.take_along_axis(found, nearest, axis=1)

    def slot_of(self, x: FloatArray) -> int | None:
        """Return where the outcomes at context x (D,) are."""
        slot = self._slots.get(hash(x.tobytes()))
        return slot if slot is not None and np.array_equal(self.X[slot], x) else None

    def store(
        self,
        X: FloatArray,
        y: FloatArray,
        noise: FloatArray,
        residual: FloatArray,
        phi: FloatArray,
        least: float,
    ) -> None:
        """Add outcomes y (N,) at X (N, D), in place of the oldest beyond WINDOW.

        Outcomes at one context share a slot: their mean, with as much noise as that has, but not
        less than `least`.
        """
        room = min(self._next + len(X) + 1, WINDOW)
        for name in _BY_SLOT:
            of_none = float(name == "noise")
            setattr(self, name, grown(getattr(self, name), room, of_none, WINDOW))
        new = []
        for n, x in enumerate(X):
            slot = self.slot_of(x)
            if slot is not None:
                share = self.noise[slot] / (self.noise[slot] + noise[n])
                self.y[slot] += share * (y[n] - self.y[slot])
                self.noise[slot] = max(self.noise[slot] * (1.0 - share), least)
                continue
            slot = self._next
            if slot < self.size:
                self._slots.pop(hash(self.X[slot].tobytes()), None)
            self._slots[hash(x.tobytes())] = slot
            self.X[slot], self.y[slot], self.noise[slot] = x, y[n], noise[n]
            self.residual[slot], self.phi[slot] = residual[n], phi[:, n]
            self._next, self.size = (slot + 1) % WINDOW, max(self.size, slot + 1)
            new.append(slot)
        if new:
            self._forest.insert(self.X, np.array(new, dtype=np.intp))

    def checkpoint(self, count: int) -> Callable[[], None]:
        """Return a function that takes back up to `count` outcomes stored from now on."""
        state = dict(self.__dict__, _forest=copy.deepcopy(self._forest))
        state |= {name: state[name].copy() for name in ("y", "noise", "_slots")}
        slots = (self._next + np.arange(min(count, WINDOW))) % WINDOW
        slots = slots[slots < self.size]
        overwritten = {name: state[name][slots] for name in ("X", "residual", "phi")}

        def roll_back() -> None:
            self.__dict__.update(state)
            for name, values in overwritten.items():
                getattr(self, name)[slots] = values

        return roll_back


#: Arrays with a row per slot.
_BY_SLOT = ("X", "y", "noise", "residual", "phi")
