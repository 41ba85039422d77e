from __future__ import annotations

import numpy as np

from oclok.oracles.arguments import arguments_of, call_text, parameters_of


class Thing:
    def __init__(self, size, names=(), scale=1.0, exact=True, lost=None):
        self.size, self.names, self.scale, self.exact = size, names, scale, exact


def test_arguments_are_read_back_from_attributes_without_defaults():
    assert list(parameters_of(Thing)) == ["size", "names", "scale", "exact", "lost"]
    assert arguments_of(Thing(3, ["a"], 1, False)) == {"size": 3, "names": ["a"], "exact": False}
    assert parameters_of(object) == arguments_of(object()) == {}


def test_long_arrays_are_abbreviated():
    text = call_text("f", {"a": np.arange(3), "b": np.arange(99), "c": np.ones((2, 3)), "d": "x"})
    assert text == "f(a=[0, 1, 2], b=<99 values>, c=<2×3 values>, d='x')"
    assert call_text("g", {"reward": np.log1p, "bound": np.array(2.0)}) == (
        "g(reward=np.log1p, bound=2.0)"
    )
