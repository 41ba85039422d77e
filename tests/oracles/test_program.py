from __future__ import annotations

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracle_instances import SUMS, answer, exact_sum, nearly_integers, subsets
from scipy.sparse import coo_array, csc_matrix

from oclok.errors import InfeasibleError, InputError, OracleError
from oclok.oracles import Knapsack, Program
from oclok.persistence import dumps, loads
from oclok.testing.oracles import check_oracle


@settings(max_examples=500, deadline=None)
@given(st.data(), st.integers(0, 3), st.integers(1, 7))
def test_no_choice_that_meets_the_constraints_is_worth_more(data, rows, arms):
    A = data.draw(arrays(float, (rows, arms), elements=st.integers(-6, 6).map(lambda n: n / 2)))
    lower = data.draw(arrays(float, rows, elements=st.integers(-6, 4) | st.just(-np.inf)))
    width = data.draw(arrays(float, rows, elements=st.integers(0, 4) | st.just(np.inf)))
    upper = np.where(np.isinf(lower), 2.0, lower) + width
    index = data.draw(arrays(float, arms, elements=st.floats(-10, 10)))
    oracle = Program(A, lower, upper)
    values = []
    for x in product((0, 1), repeat=arms):
        sums = A @ np.array(x, dtype=float)
        is_feasible = bool(((lower <= sums) & (sums <= upper)).all())
        assert oracle.is_feasible(np.flatnonzero(x)) == is_feasible
        if is_feasible:
            values.append(float(index @ x))
    if not values:
        with pytest.raises(InfeasibleError, match="no choice of base arms"):
            oracle(index)
        return
    super_arm = oracle(index)
    assert oracle.is_feasible(super_arm)
    assert oracle.value(index, super_arm) >= max(values) - 1e-9 * max(1.0, np.abs(index).max())


@settings(max_examples=50, deadline=None)
@given(arrays(float, 5, elements=st.floats(-1, 1)), st.sampled_from([1e-12, 1e-6, 1e8, 1e200]))
def test_the_size_of_indices_does_not_matter(index, scale):
    assume(np.abs(index[index != 0]).min(initial=1.0) > 1e-3)
    oracle = Program(np.ones((1, 5)), 2, 3)
    taken, value = oracle(index * scale), np.sort(index)[::-1].cumsum()[1:3].max()
    assert index[taken].sum() == pytest.approx(value, abs=1e-9)


def test_a_budget_agrees_with_the_knapsack():
    rng = np.random.default_rng(0)
    costs = rng.random(60).round(3)
    program, knapsack = Program(costs[None], -np.inf, 6.0), Knapsack(costs, 6.0)
    for index in rng.standard_normal((5, 60)):
        value = knapsack.value(index, knapsack(index))
        assert program.value(index, program(index)) == pytest.approx(value, rel=1e-9)


def test_sparse_coefficients_are_as_good_as_dense_ones():
    dense = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    twice = coo_array(([0.5, 0.5, 2.0, 3.0], ([0, 0, 0, 1], [0, 0, 2, 1])), shape=(2, 3))
    for A in (csc_matrix(dense), coo_array(dense), twice):
        oracle = Program(A, -np.inf, [2.0, 1.0])
        assert oracle([1.0, 9.0, 1.5]).tolist() == [2]
        assert [oracle.is_feasible(s) for s in ([0], [0, 2], [1])] == [True, False, False]


def test_coefficients_are_copied():
    A = np.ones((1, 2))
    oracle = Program(A, 1, 1)
    A[:] = 5.0
    assert oracle([1.0, 2.0]).tolist() == [1]
    A = coo_array(np.full((1, 2), 4.0)).tocsr()
    Program(A, 1, 1)
    assert A.data.tolist() == [4.0, 4.0]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e9, 2.0**1000])
def test_constraints_have_no_tolerance(scale):
    for least, most, is_feasible in [
        (-np.inf, 2 * scale, True),
        (-np.inf, np.nextafter(2 * scale, 0), False),
        (2 * scale, np.inf, True),
        (np.nextafter(2 * scale, np.inf), np.inf, False),
    ]:
        oracle = Program([[2 * scale, scale]], least, most)
        assert oracle.is_feasible([0]) is is_feasible
    assert not Program([[0.1, 0.2]], None, 0.3).is_feasible([0, 1])
    assert Program([[1, 2]], None, 3).is_feasible([0, 1])
    assert Program([[1e308, 1e308, -1e308]], None, 1e308).is_feasible([0, 1, 2])


def test_sets_that_miss_a_constraint_by_next_to_nothing_are_ruled_out_together():
    # Any 5 of 40 exceed the budget, by less than HiGHS can see; there are 658,008 such sets.
    rng = np.random.default_rng(0)
    weights, index = 1 + 1e-8 * rng.random(40), rng.random(40)
    oracle = Program([weights], None, 5.0)
    assert oracle(index).tolist() == sorted(np.argsort(-index)[:4].tolist())


def test_without_constraints_all_positive_indices_are_chosen():
    assert Program(np.empty((0, 3)), 0, 0)([1.0, -1.0, 2.0]).tolist() == [0, 2]


def test_no_base_arms_give_the_empty_super_arm_if_that_is_feasible():
    assert Program(np.empty((1, 0)), 0, 1)([]).tolist() == []
    with pytest.raises(InfeasibleError, match="no base arms"):
        Program(np.empty((1, 0)), 1, 2)([])


def test_equal_and_negative_indices_are_solved():
    oracle = Program(np.ones((1, 4)), 2, 3)
    assert len(oracle(np.zeros(4))) in (2, 3)
    assert len(oracle(np.full(4, -1.0))) == 2
    assert len(oracle(np.full(4, 1.0))) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], 0, 1), r"A must be numbers of shape \(R, M\).*got shape \(2,\)"),
        (([["x"]], 0, 1), "A must be numbers"),
        (([[np.nan]], 0, 1), "A must be finite"),
        (([[1.0]], [0, 0], 1), "lower must be one number, or one for each of the 1 rows"),
        (([[1.0]], 0, "all"), "upper must be numbers"),
        (([[1.0]], np.nan, 1), "lower must not be NaN or inf"),
        (([[1.0]], np.inf, np.inf), "lower must not be NaN or inf"),
        (([[1.0]], -np.inf, -np.inf), "upper must not be NaN or -inf"),
        (([[1.0], [1.0]], [0, 2], 1), "lower must not exceed upper; row 1 has 2.0 and 1.0"),
    ],
)
def test_bad_programs_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Program(*arguments)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (SimpleNamespace(status=1, message="out of time", x=None), "out of time"),
        (SimpleNamespace(status=0, x=np.ones(2)), "sets miss a constraint"),
    ],
)
def test_a_solver_that_fails_is_not_believed(monkeypatch, answer, message):
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: answer)
    with pytest.raises(OracleError, match=message):
        Program([[1.0, 1.0]], 0, 1)([0.5, 0.5])


def test_an_equality_that_no_set_meets_is_infeasible():
    # With presolve, HiGHS 1.12 ends this one with "Solve error".
    with pytest.raises(InfeasibleError, match="no choice of base arms"):
        Program([[2.5, -1.0, 2.5]], 2, 2)(np.zeros(3))


def test_a_loaded_program_answers_alike():
    rng = np.random.default_rng(1)
    oracle = Program(rng.integers(-2, 3, (3, 9)), [-np.inf, -1, 0], [2, np.inf, 3])
    twin = loads(dumps(oracle))
    assert dumps(twin) == dumps(oracle)
    for index in rng.standard_normal((5, 9)):
        np.testing.assert_array_equal(twin(index), oracle(index))


def test_programs_pass_the_suite():
    check_oracle(Program([[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0]], [2, 0], [4, 1]), instances=8)
    check_oracle(Program([[2.0, 2.0, 4.0]], 3, 3), instances=5)


def test_nearly_integer_programs_equal_exact_enumeration(adversarial_draws):
    rng = np.random.default_rng(0)
    optimal = infeasible = 0
    for _ in range(adversarial_draws):
        arms = int(rng.integers(3, 9))
        oracle = SUMS["Program"](rng, arms)
        index = nearly_integers(rng, -3, 6, arms)
        index = rng.standard_normal(arms) if rng.random() < 0.5 else index
        A, rows = oracle.A.toarray(), range(oracle.A.shape[0])
        A = [[Fraction(a) for a in row] for row in A]
        best = None
        for s in subsets(arms):
            sums = [sum((row[m] for m in s), Fraction(0)) for row in A]
            feasible = all(oracle.lower[r] <= sums[r] <= oracle.upper[r] for r in rows)
            assert oracle.is_feasible(s) == feasible
            if feasible and (best is None or exact_sum(index, s) > best):
                best = exact_sum(index, s)
        super_arm = answer(oracle, index)
        assert (super_arm is None) == (best is None)
        if super_arm is not None:
            optimal += 1
            assert oracle.is_feasible(super_arm)
            assert float(best - exact_sum(index, super_arm)) <= 1e-10 * np.abs(index).max()
        else:
            infeasible += 1
    assert optimal > infeasible > 0
