from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import coo_array

from oclok.errors import InputError, OracleError
from oclok.oracles import (
    Coverage,
    Knapsack,
    Matching,
    Partition,
    Path,
    Program,
    TIMPlus,
    TopK,
    oracle_from_json,
)
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


ORACLES = [
    (TopK(5), {"kind": "TopK", "k": 5}),
    (TopK(2, np.log1p), {"kind": "TopK", "k": 2, "reward": "log1p"}),
    (Knapsack("price", 100), {"kind": "Knapsack", "costs": "price", "budget": 100.0}),
    (Knapsack([1, 2, 0.5, 1], 2.5), {"kind": "Knapsack", "costs": [1, 2, 0.5, 1], "budget": 2.5}),
    (Partition("region", 2), {"kind": "Partition", "groups": "region", "limits": 2}),
    (
        Partition([1, 1, 2, 2], {1: 1, 2: 2}),
        {"kind": "Partition", "groups": [1, 1, 2, 2], "limits": {"1": 1, "2": 2}},
    ),
    (Matching("driver", "rider"), {"kind": "Matching", "left": "driver", "right": "rider"}),
    (
        Matching(["a", "a", "b", "b"], [0, 1, 0, 1], 1, at_most=True),
        {
            "kind": "Matching",
            "left": ["a", "a", "b", "b"],
            "right": [0, 1, 0, 1],
            "k": 1,
            "at_most": True,
        },
    ),
    (
        Coverage([0, 0, 1, 1], [0, 1, 1, 2], 1, solver="greedy"),
        {
            "kind": "Coverage",
            "left": [0, 0, 1, 1],
            "right": [0, 1, 1, 2],
            "k": 1,
            "solver": "greedy",
        },
    ),
    (
        TIMPlus([0, 0, 1, 1], [0, 1, 1, 2], 1, epsilon=0.2, seed=4),
        {
            "kind": "TIMPlus",
            "left": [0, 0, 1, 1],
            "right": [0, 1, 1, 2],
            "k": 1,
            "epsilon": 0.2,
            "seed": 4,
        },
    ),
    (
        Path(["a", "a", "b", "c"], ["b", "c", "d", "d"], "a", "d"),
        {
            "kind": "Path",
            "tail": ["a", "a", "b", "c"],
            "head": ["b", "c", "d", "d"],
            "source": "a",
            "target": "d",
        },
    ),
    (
        Program(coo_array([[1.0, 1.0, 0.0, 2.0]]), [-np.inf], [2.0]),
        {"kind": "Program", "A": [[1.0, 1.0, 0.0, 2.0]], "lower": [None], "upper": [2.0]},
    ),
    (
        Program(["price", [1, 0, 0, 1]], None, [5, 1]),
        {"kind": "Program", "A": ["price", [1, 0, 0, 1]], "lower": None, "upper": [5.0, 1.0]},
    ),
]


@pytest.mark.parametrize(("oracle", "form"), ORACLES, ids=lambda value: type(value).__name__)
def test_an_oracle_becomes_json_and_is_made_from_it(oracle, form):
    assert oracle.to_json() == form
    text = json.dumps(form, allow_nan=False)
    twin = oracle_from_json(json.loads(text))
    assert type(twin) is type(oracle)
    assert twin.to_json() == form
    column = {"price": [1.0, 2.0, 3.0, 4.0], "region": list("abab"), "driver": [0, 1, 0, 1]}
    column["rider"] = [0, 0, 1, 1]
    one, other = (o.resolve(column.__getitem__) for o in (oracle, twin))
    for index in np.random.default_rng(0).random((4, 4)):
        assert one(index).tolist() == other(index).tolist()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (None, "an oracle must be an object.*got None"),
        ("TopK", "an oracle must be an object"),
        ({}, r"kind must be one of Coverage, Knapsack, .*TopK; got None"),
        ({"kind": "Topk", "k": 1}, "kind must be one of .*TopK; got 'Topk'"),
        ({"kind": "Oracle"}, "kind must be one of"),
        ({"kind": ["TopK"]}, "kind must be one of"),
        ({"kind": "TopK", "n": 1}, "TopK has no field 'n'; it has k, reward"),
        ({"kind": "TopK", "self": 1}, "TopK has no field 'self'"),
        ({"kind": "TopK"}, "TopK needs the field 'k'; it has k, reward"),
        ({"kind": "TopK", "k": "five"}, "TopK: k must be an integer of at least 1; got 'five'"),
        ({"kind": "TopK", "k": True}, "k must be an integer"),
        ({"kind": "TopK", "k": 2, "reward": "system"}, "reward must name a NumPy function"),
        ({"kind": "TopK", "k": 2, "reward": 3}, "reward must be a function"),
        ({"kind": "Knapsack", "costs": "price", "budget": "100"}, "budget must be numbers"),
        ({"kind": "Knapsack", "costs": "price", "budget": None}, "budget must be numbers"),
        ({"kind": "Knapsack", "costs": [[1]], "budget": 1}, r"costs must have shape \(M,\)"),
        ({"kind": "Knapsack", "costs": {"a": 1}, "budget": 1}, "costs must"),
        ({"kind": "Partition", "groups": "region", "limits": "2"}, "limits must be an integer"),
        ({"kind": "Partition", "groups": "region", "limits": {"a": 1.5}}, r"limits\['a'\]"),
        ({"kind": "Partition", "groups": 3, "limits": 1}, "groups must be one hashable label"),
        ({"kind": "Matching", "left": 3, "right": "r"}, "left must be integers or strings"),
        ({"kind": "Matching", "left": "l", "right": "r", "at_most": 1}, "at_most must be True"),
        ({"kind": "Coverage", "left": "l", "right": "r", "k": 1, "solver": 1}, "solver must be"),
        ({"kind": "TIMPlus", "left": "l", "right": "r", "k": 1, "seed": "x"}, "seed must be"),
        ({"kind": "Path", "tail": "t", "head": "h", "source": 1.5, "target": 2}, "source must be"),
        ({"kind": "Program", "A": "price", "lower": 0, "upper": 1}, "A must be"),
        ({"kind": "Program", "A": [["x"]], "lower": 0, "upper": 1}, "A must be numbers"),
        ({"kind": "Program", "A": [[1], [1, 2]], "lower": 0, "upper": 1}, "A must be"),
        ({"kind": "Program", "A": ["price", 3], "lower": 0, "upper": 1}, "A's rows must"),
        ({"kind": "Program", "A": ["price"], "lower": {}, "upper": 1}, "lower must be numbers"),
    ],
)
def test_whatever_is_wrong_is_named(form, message):
    with pytest.raises(InputError, match=message):
        oracle_from_json(form)


def test_what_json_cannot_express_is_refused():
    with pytest.raises(InputError, match="reward has no JSON form"):
        TopK(2, reward=lambda total: total).to_json()
    with pytest.raises(InputError, match="groups has no JSON form"):
        Partition([("a", 1)], 1).to_json()
    with pytest.raises(InputError, match="limits has no JSON form"):
        Partition(["1"], {1: 1, "1": 2}).to_json()
    with pytest.raises(InputError, match="seed has no JSON form"):
        TIMPlus([0], [0], 1, seed=np.random.SeedSequence(1)).to_json()
    with pytest.raises(OracleError, match="included or excluded"):
        TopK(2).given(include=[0]).to_json()


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "Coverage", "left": "a", "right": [[[], [], [{"b": 1}]]], "k": 1},
        {"kind": "Partition", "groups": [[1, 2], [3]], "limits": 1},
        {"kind": "Knapsack", "costs": [{}], "budget": 1},
        {"kind": "Program", "A": [[1], [1, 2]], "lower": None, "upper": None},
    ],
)
def test_odd_shapes_are_input_errors(form):
    with pytest.raises(InputError):
        oracle_from_json(form)
