"""`check_oracle`: whether an oracle keeps its promises; brute force over subsets is the judge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, cycle, islice
from typing import Any, TypeAlias

import numpy as np

from oclok.errors import InfeasibleError, OracleError
from oclok.oracles.base import Oracle
from oclok.testing.assertions import check, check_equal, check_refused, reloaded
from oclok.typing import FloatArray, IntArray

#: Brute force over the subsets of more base arms takes too long.
LARGEST = 14
#: Runs per index of an oracle that may fail (beta < 1).
RUNS = 20
#: Relative difference of values that is taken for a rounding error.
VALUE_ROUNDING = 1e-9
#: Errors of the index, in terms of its size, for which claims of stability are tried.
STABILITY_ERRORS = (1e-6, 0.03, 0.3, 3.0)

#: How indices of each family are drawn, given a generator and the number of base arms.
FAMILIES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal": lambda rng, arms: rng.standard_normal(arms),
    "unit": lambda rng, arms: rng.random(arms),
    "equal": lambda rng, arms: np.full(arms, rng.standard_normal()),
    "negative": lambda rng, arms: -rng.exponential(size=arms),
    "ties": lambda rng, arms: rng.integers(-1, 3, arms) / 2.0,
}

#: All feasible super arms with the given numbers of base arms.
FeasibleOfSizes: TypeAlias = Callable[[range], list[IntArray]]


def check_oracle(
    oracle: Oracle,
    arms: int | None = None,
    *,
    instances: int = 20,
    seed: int = 0,
    families: Sequence[str] = tuple(FAMILIES),
) -> None:
    """Raise an `AssertionError` that says what is wrong with `oracle`.

    Its super arms must be feasible, ascending, worth `alpha` times the best one (in a share of
    `beta` of all runs), and the same in a second call (if `beta` is 1) and once loaded. It
    must refuse bad indices, and raise `InfeasibleError` only where nothing is feasible. What it
    claims beyond that must hold: `lipschitz`, where it is not None, and `is_stable`, where that
    is True. If it can include and exclude base arms (`given`), it must do so as well as `alpha`
    says.

    Args:
        oracle: an oracle for at most 14 base arms.
        arms: number of base arms, for an oracle that takes any (`size` None). Its super arms
            are then judged against feasible ones of the same size.
        instances: number of random indices, drawn from the families in turn.
        seed: seed of their randomness.
        families: kinds of indices to try: "normal", "unit" (in [0, 1]), "equal", "negative",
            "ties" (of few values). Leave out those that the oracle is meant to refuse.

    Examples:
        >>> from oclok.oracles import Path, TopK
        >>> check_oracle(TopK(3), arms=6)
        >>> roundabout = Path([0, 1, 1, 2], [1, 2, 3, 1], source=0, target=3)
        >>> check_oracle(roundabout, families=["negative"])
    """
    count = _number_of_arms(oracle, arms)
    check(0 < oracle.alpha <= 1, f"alpha must be in (0, 1]; it is {oracle.alpha}")
    check(0 < oracle.beta <= 1, f"beta must be in (0, 1]; it is {oracle.beta}")
    reloaded(oracle)
    _check_bad_input(oracle, count)

    @cache
    def feasible(sizes: range) -> list[IntArray]:
        subsets = (subset for size in sizes for subset in combinations(range(count), size))
        return [np.array(s, dtype=np.intp) for s in subsets if oracle.is_feasible(s)]

    rng = np.random.default_rng(seed)
    runs: list[bool] = []
    for family in islice(cycle(families), instances):
        runs += _check_instance(oracle, FAMILIES[family](rng, count), feasible)
    # Four standard deviations below the promised share: chance fails 1 in 30,000 good oracles.
    least = oracle.beta * len(runs) - 4 * math.sqrt(len(runs) * oracle.beta * (1 - oracle.beta))
    reached = f"{oracle.alpha} times the best value was reached in {sum(runs)} of {len(runs)} runs"
    check(sum(runs) >= least, f"alpha = {reached}; beta = {oracle.beta} promises more")


def _number_of_arms(oracle: Oracle, arms: int | None) -> int:
    check(isinstance(oracle, Oracle), f"{oracle!r} does not derive from oclok.oracles.Oracle")
    count = oracle.size if arms is None else arms
    if count is None:
        raise OracleError("the oracle takes any number of base arms: say how many with arms=")
    if oracle.size not in (None, count):
        raise OracleError(f"the oracle describes {oracle.size} base arms; got arms={arms}")
    if not 1 <= count <= LARGEST:
        raise OracleError(f"brute force needs 1 to {LARGEST} base arms; got {count}")
    return count


def _check_bad_input(oracle: Oracle, count: int) -> None:
    zeros = np.zeros(count)
    check_refused(oracle, "an index with a NaN", oracle, np.append(zeros[1:], np.nan))
    check_refused(oracle, "an index with an infinity", oracle, np.append(zeros[1:], np.inf))
    check_refused(oracle, "an index with two axes", oracle, zeros[:, None])
    no_super_arms: list[Any] = [[0, 0], [-1], [0.5], [[0]]]
    if oracle.size is not None:
        check_refused(oracle, "an index too long", oracle, np.append(zeros, 0.0))
        check_refused(oracle, "an index too short", oracle, zeros[1:])
        no_super_arms.append([count])
    for wrong in no_super_arms:
        check(not oracle.is_feasible(wrong), f"is_feasible({wrong}) must be False")


def _check_instance(oracle: Oracle, index: FloatArray, feasible: FeasibleOfSizes) -> list[bool]:
    """Check the answers to one index; return of each run whether it was good enough."""
    given = index.copy()
    twin = reloaded(oracle)
    try:
        super_arm = oracle(index)
    except InfeasibleError:
        overlooked = feasible(range(index.size + 1))[:1]
        check(not overlooked, f"InfeasibleError for index {given}, but {overlooked} is feasible")
        return []
    check_equal(index, given, f"the index {given} was changed into {index}")
    _check_answer(oracle, index, super_arm)
    _check_lipschitz(oracle, index, super_arm)
    _check_stability(oracle, index, super_arm)
    loaded = twin(index)
    wrong = f"after a save and a load, {given} gave {loaded}, not {super_arm}"
    check_equal(loaded, super_arm, wrong)
    again = [oracle(index) for _ in range(1 if oracle.beta == 1 else RUNS - 1)]
    if oracle.beta == 1:
        wrong = f"{given} gave {super_arm}, then {again[0]}; only beta < 1 allows that"
        check_equal(again[0], super_arm, wrong)

    @cache
    def best(sizes: range) -> float:
        return max(oracle.value(index, rival) for rival in feasible(sizes))

    _check_given(oracle, index, feasible(range(super_arm.size, super_arm.size + 1)), feasible)
    good, sizes = [], range(index.size + 1)
    for answer in (super_arm, *again):
        _check_answer(oracle, index, answer)
        if oracle.size is None:
            sizes = range(answer.size, answer.size + 1)
        good.append(_is_good(oracle, index, answer, best(sizes)))
    return good


def _check_answer(oracle: Oracle, index: FloatArray, super_arm: IntArray) -> None:
    answer = f"the answer to {index}, {super_arm!r},"
    is_array = isinstance(super_arm, np.ndarray) and super_arm.dtype.kind == "i"
    check(is_array and super_arm.ndim == 1, f"{answer} is not a 1-D array of integers")
    check((np.diff(super_arm) > 0).all(), f"{answer} is not ascending and distinct")
    check(oracle.is_feasible(super_arm), f"{answer} is not feasible")


def _check_lipschitz(oracle: Oracle, index: FloatArray, super_arm: IntArray) -> None:
    """Check |u(f) - u(f')| ≤ B Σ|f_i - f'_i| for f with values in [0, 1], changed in all or one."""
    if oracle.lipschitz is None:
        return
    means, others = np.sin(index) ** 2, np.cos(3 * index) ** 2
    changed = [others]
    for arm in super_arm[:4]:
        changed.append(means.copy())
        changed[-1][arm] = 0.0 if means[arm] > 0.5 else 1.0
    for others in changed:
        change = abs(oracle.value(means, super_arm) - oracle.value(others, super_arm))
        allowed = oracle.lipschitz * float(np.abs(means - others)[super_arm].sum())
        what = f"the value of {super_arm} changes by {change} between means {means} and {others}"
        wrong = f"{what}; lipschitz = {oracle.lipschitz} allows {allowed}"
        check(change <= allowed + VALUE_ROUNDING, wrong)


def _check_stability(oracle: Oracle, index: FloatArray, super_arm: IntArray) -> None:
    """Check that a choice called stable is made for any index within the error."""
    if oracle.beta < 1:
        is_claimed = oracle.is_stable(index, super_arm, np.zeros(index.size))
        check(not is_claimed, f"{super_arm} for {index}: nothing is certain where beta < 1")
        return
    rng = np.random.default_rng(0)
    size = float(np.abs(index).max()) or 1.0
    for error in [size * e * np.ones(index.size) for e in STABILITY_ERRORS]:
        if not oracle.is_stable(index, super_arm, error):
            continue
        away = np.ones(index.size)
        away[super_arm] = -1.0
        for sign in (away, -away, rng.uniform(-1, 1, index.size)):
            _check_same_answer(oracle, index, super_arm, index + sign * error, f"{error[0]:.3g}")
    if oracle.is_stable(index, super_arm, np.full(index.size, np.inf)):
        for other in (-index, 9 * rng.uniform(-size, size, index.size)):
            _check_same_answer(oracle, index, super_arm, other, "inf")


def _check_same_answer(
    oracle: Oracle, index: FloatArray, super_arm: IntArray, other: FloatArray, error: str
) -> None:
    claim = f"{super_arm} for {index} is called stable within an error of {error}"
    try:
        answer = oracle(other)
    except OracleError as reason:
        raise AssertionError(f"{claim}, but {other} is refused: {reason}") from reason
    check_equal(answer, super_arm, f"{claim}, but {other} gives {answer}")


def _check_given(
    oracle: Oracle, index: FloatArray, rivals: list[IntArray], feasible: FeasibleOfSizes
) -> None:
    """Check what is chosen when one base arm of some feasible set is included, another excluded."""
    rival = rivals[len(rivals) // 2]
    include = rival[-1:]
    exclude = np.setdiff1d(np.arange(index.size), rival)[:1]
    what = f"given(include={include}, exclude={exclude})"
    try:
        given = oracle.given(include, exclude)
        answer = given(index)
    except InfeasibleError as reason:
        raise AssertionError(f"{what} is infeasible ({reason}), but {rival} would do") from reason
    except OracleError:  # some oracles cannot include or exclude, or not here; they say so
        return
    _check_answer(given, index, answer)
    what += f", the answer to {index}, {answer},"
    check(oracle.is_feasible(answer), f"{what} is not feasible")
    check(np.isin(include, answer).all(), f"{what} lacks a base arm that must be included")
    check(not np.isin(exclude, answer).any(), f"{what} has a base arm that must be excluded")
    if oracle.beta == 1:
        sets = rivals if oracle.size is None else feasible(range(index.size + 1))
        rest = [s for s in sets if given.is_feasible(s)]
        _is_good(given, index, answer, max(given.value(index, s) for s in rest))


def _is_good(oracle: Oracle, index: FloatArray, super_arm: IntArray, best: float) -> bool:
    """Return whether `super_arm` is worth alpha times `best`, as it must be where beta is 1."""
    if oracle.alpha < 1 and best < 0:  # a share of a loss promises nothing
        return True
    value = oracle.value(index, super_arm)
    good = value >= oracle.alpha * best - VALUE_ROUNDING * max(1.0, abs(best))
    answer = f"the answer to {index}, {super_arm}, is worth {value}"
    wrong = f"{answer}, less than alpha = {oracle.alpha} times the best value, {best}"
    check(good or oracle.beta < 1, wrong)
    return good
