from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles import Path
from oclok.persistence import dumps, loads
from oclok.testing.oracles import check_oracle

eighths = st.integers(-16, 16).map(lambda n: n / 8)
NODES = 6


def all_paths(tail, head, source, target, visited=()):
    """Yield the edges of every path from source to target that visits no node twice."""
    if source == target:
        yield ()
        return
    for edge, (start, end) in enumerate(zip(tail, head, strict=True)):
        if start == source and end not in (*visited, source):
            for rest in all_paths(tail, head, end, target, (*visited, source)):
                yield (edge, *rest)


def check_against_all_paths(edges, index, source, target):
    tail, head = [edge[0] for edge in edges], [edge[1] for edge in edges]
    oracle = Path(tail, head, source, target)
    paths = {tuple(sorted(path)) for path in all_paths(tail, head, source, target)}
    if not paths:
        with pytest.raises(InfeasibleError, match="no path leads"):
            oracle(index)
        return
    super_arm = oracle(index)
    assert tuple(super_arm) in paths
    assert oracle.is_feasible(super_arm)
    assert oracle.value(index, super_arm) == max(sum(index[e] for e in path) for path in paths)


def graphs(forward_only):
    nodes = st.integers(0, NODES - 1)
    edge = st.tuples(nodes, nodes)
    if forward_only:
        edge = edge.map(sorted).filter(lambda ends: ends[0] < ends[1])
    return st.lists(edge, max_size=12)


@settings(max_examples=500, deadline=None)
@given(st.data(), graphs(forward_only=True), st.permutations(range(NODES)))
def test_without_cycles_no_path_is_worth_more(data, edges, names):
    edges = [(names[start], names[end]) for start, end in edges]
    index = data.draw(st.lists(eighths, min_size=len(edges), max_size=len(edges)))
    check_against_all_paths(edges, index, names[0], names[-1])


@settings(max_examples=500, deadline=None)
@given(st.data(), graphs(forward_only=False))
def test_with_cycles_no_path_is_worth_more_where_no_index_is_positive(data, edges):
    index = data.draw(st.lists(eighths, min_size=len(edges), max_size=len(edges)))
    check_against_all_paths(edges, [-abs(number) for number in index], 0, NODES - 1)


@settings(max_examples=300, deadline=None)
@given(graphs(forward_only=False), st.sets(st.integers(0, 11), max_size=5))
def test_feasible_is_what_is_a_path(edges, super_arm):
    tail, head = [edge[0] for edge in edges], [edge[1] for edge in edges]
    paths = {tuple(sorted(path)) for path in all_paths(tail, head, 0, NODES - 1)}
    oracle = Path(tail, head, 0, NODES - 1)
    assert oracle.is_feasible(sorted(super_arm)) == (tuple(sorted(super_arm)) in paths)
    assert all(oracle.is_feasible(path[::-1]) for path in paths)


def test_a_positive_index_on_a_cycle_is_refused():
    oracle = Path([0, 1, 1, 2], [1, 2, 3, 1], 0, 3)
    with pytest.raises(OracleError, match=r"≤ 0 on a graph with cycles.* position 2 has 0\.5"):
        oracle([-1.0, -1.0, 0.5, 0.25])


@pytest.mark.parametrize(
    ("what", "tail", "head"),
    [
        ("a cycle that cannot be reached", [7, 8], [8, 7]),
        ("a cycle that leads nowhere", [0, 7, 8], [7, 8, 7]),
        ("a way back to the source", [1], [0]),
        ("a way on from the target", [2, 9], [9, 1]),
        ("an edge from a node to itself", [1], [1]),
    ],
)
def test_cycles_that_no_path_can_touch_do_not_matter(what, tail, head):
    oracle = Path([0, 1, *tail], [1, 2, *head], source=0, target=2)
    assert oracle(np.ones(2 + len(tail))).tolist() == [0, 1]


def test_an_index_of_zero_is_still_an_edge():
    assert Path([0, 1, 2, 1], [1, 2, 1, 3], 0, 3)([0.0, 0.0, 0.0, 0.0]).tolist() == [0, 3]
    assert Path([0, 1], [1, 2], 0, 2)([0.0, 0.0]).tolist() == [0, 1]


@pytest.mark.parametrize("back", [[], [2]])
def test_of_equal_parallel_edges_the_lower_position_is_chosen(back):
    tail, head = [1, 0, 0, 1, 1, *back], [2, 1, 1, 2, 3, *[1 for _ in back]]
    oracle = Path(tail, head, 0, 2)
    assert oracle(np.full(len(tail), -1.0)).tolist() == [0, 1]


def test_from_a_node_to_itself_there_is_the_empty_path_only():
    oracle = Path([0, 1], [1, 0], source=0, target=0)
    assert oracle([5.0, 5.0]).tolist() == []
    assert oracle.is_feasible([])
    assert not oracle.is_feasible([0, 1])


def test_an_empty_graph_has_no_path():
    oracle = Path([], [], source=3, target=4)
    assert not oracle.is_feasible([])
    with pytest.raises(InfeasibleError, match="from node 3 to 4"):
        oracle([])
    assert Path([], [], source=3, target=3)([]).tolist() == []


def test_nodes_can_be_any_integers():
    far = np.iinfo(np.int64).max
    oracle = Path(np.array([-5, far], dtype=np.int64), [far, 12], source=-5, target=12)
    assert oracle([1.0, 1.0]).tolist() == [0, 1]


def test_nodes_beyond_64_bits_with_a_sign_are_told_apart():
    tail = np.array([2**63, 2**63 + 1], dtype=np.uint64)
    assert Path(tail, [-1, -1], source=2**63 + 1, target=-1)([5.0, 1.0]).tolist() == [1]


def test_nodes_can_be_strings():
    oracle = Path(["home", "home", "bus"], ["work", "bus", "work"], "home", "work")
    assert oracle([1.0, 2.0, 3.0]).tolist() == [1, 2]
    assert Path(["1", 1], [2, 2], source=1, target=2)([9.0, 1.0]).tolist() == [1]


def test_a_long_chain_is_solved():
    nodes = np.arange(20_000)
    assert Path(nodes, nodes + 1, 0, 20_000)(-np.ones(20_000)).size == 20_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1], 0, 1), "got 2 and 1"),
        (([0.5], [1], 0, 1), "tail must be integers"),
        (([0], [[1]], 0, 1), "head must be integers"),
        (([0], [1], 0.0, 1), "source must be an integer"),
        (([0], [1], 0, None), "target must be an integer"),
    ],
)
def test_bad_graphs_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Path(*arguments)


def test_a_loaded_path_answers_alike():
    oracle = Path([4, 5, 4, 6], [5, 7, 6, 7], 4, 7)
    twin = loads(dumps(oracle))
    for index in np.random.default_rng(0).standard_normal((10, 4)):
        np.testing.assert_array_equal(twin(index), oracle(index))
    assert dumps(twin) == dumps(oracle)


def test_on_a_graph_with_cycles_a_choice_that_may_be_refused_is_not_stable():
    oracle = Path([0, 1, 2, 1], [1, 2, 1, 3], 0, 3)
    index = np.array([-2.0, -5.0, -3.0, -0.1])
    assert oracle.is_stable(index, np.array([0, 3]), np.full(4, 0.05))
    assert not oracle.is_stable(index, np.array([0, 3]), np.full(4, 0.2))


def test_paths_pass_the_suite():
    check_oracle(Path([0, 0, 1, 1, 2, 0, 3, 0], [1, 2, 2, 3, 3, 1, 4, 4], 0, 4))
    check_oracle(Path([0, 1], [1, 0], 0, 0))
    check_oracle(Path([0, 1], [1, 0], 1, 2))
    two_ways = Path([0, 1, 1, 2, 2, 3, 0, 2], [1, 0, 2, 1, 3, 2, 2, 3], 0, 3)
    check_oracle(two_ways, families=["negative"])
