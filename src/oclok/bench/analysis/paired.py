"""Is one policy better than another? Differences and ratios of regret, paired by repeat.

All policies of a repeat meet the same rounds and the same noise, so they are compared within
repeats; only the choice of repeats is left to chance.

| symbol | meaning                                                                              |
|--------|--------------------------------------------------------------------------------------|
| n      | number of repeats                                                                    |
| d_i    | difference of final cumulative regret in repeat i, policy minus reference            |
| r_i    | their ratio; its mean is geometric, so that a/b and b/a say the same                 |
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from oclok.bench.analysis import measures
from oclok.bench.analysis.tables import complete
from oclok.errors import InputError
from oclok.typing import FloatArray

#: With fewer repeats, intervals are Student's: resamples of a few repeats often have next to no
#: spread, which makes some bootstrap-t intervals absurdly wide.
LEAST_RESAMPLED = 10

#: Of the intervals, and how many resamples they are made of.
LEVEL, RESAMPLES = 0.95, 10_000
#: Family-wise error rate that "significant" stands for.
SIGNIFICANCE = 0.05


def compare(table: pd.DataFrame, reference: str | None = None) -> pd.DataFrame:
    """Compare the final cumulative regret of each policy with that of a `reference`.

    Args:
        table: of `run`, or of `simulate` with columns `policy` and `repeat`.
        reference: label of a policy; the first one if left out.

    Returns:
        Table indexed by `variant` and `policy`, without the reference. Columns are

        - `repeats`: n, those that both policies have,
        - `regret`, `reference_regret`: mean regrets,
        - `difference`: mean of d_i, with `difference_low` and `difference_high`,
        - `ratio`: geometric mean of r_i, with `ratio_low` and `ratio_high`; NaN where a regret is
          not above 0,
        - `p_value`: of the paired t-test that the mean difference is 0,
        - `p_holm`: the same, corrected by Holm's method for the number of policies in the variant.

        Intervals are of 95%: bootstrap-t (Efron and Tibshirani 1993, chapter 12), or Student's
        with fewer than `LEAST_RESAMPLED` repeats. With one repeat, they and p-values are NaN.
    """
    table = complete(table)
    reference = choose_reference(table, reference)
    rng = np.random.default_rng(0)
    keys = ["variant", "repeat", "policy"]
    finals = measures.longest_runs(table).groupby(keys)["regret"].sum().unstack()
    rows = {}
    for variant in measures.variants(table):
        wide = finals.loc[variant]
        for policy in measures.policies(table):
            pair = wide[[policy, reference]].dropna().to_numpy()
            if policy != reference and len(pair):
                rows[variant, policy] = _row(pair[:, 0], pair[:, 1], rng)
    index = pd.MultiIndex.from_tuples(list(rows), names=["variant", "policy"])
    result = pd.DataFrame(list(rows.values()), index=index, columns=_COLUMNS)
    result["p_holm"] = result.groupby(level="variant", sort=False)["p_value"].transform(holm)
    return result


def choose_reference(table: pd.DataFrame, reference: str | None) -> str:
    """Return `reference` if the table has it, the first policy if it is None."""
    known = measures.policies(table)
    if reference is not None and reference not in known:
        raise InputError(f"there is no policy {reference!r} to compare with; got {known}")
    return known[0] if reference is None else reference


def holm(p_values: pd.Series) -> pd.Series:
    """Return p-values corrected for their number by Holm's step-down method; NaN stay NaN."""
    known = p_values.dropna().sort_values()
    factors = np.arange(len(known), 0, -1)
    corrected = np.minimum(1.0, np.maximum.accumulate(known.to_numpy() * factors))
    return pd.Series(corrected, known.index).reindex(p_values.index)


def student_interval(values: FloatArray) -> tuple[float, float]:
    """Return Student's interval of 95% of the mean of two or more `values`, shape (n,)."""
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    margin = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2)) * error
    return float(mean - margin), float(mean + margin)


def bootstrap_interval(values: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    """Return the bootstrap-t interval of 95% of the mean of independent `values`, shape (n,)."""
    n = len(values)
    if n < 2:
        return np.nan, np.nan
    if n < LEAST_RESAMPLED:
        return student_interval(values)
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(n)
    tail = (1 - LEVEL) / 2
    drawn = values[rng.integers(0, n, (RESAMPLES, n))]
    errors = drawn.std(axis=1, ddof=1) / np.sqrt(n)
    varied = errors > 1e-12 * error  # one value n times over says nothing of the spread
    if error == 0 or not varied.any():
        return mean, mean
    t = (drawn.mean(axis=1)[varied] - mean) / errors[varied]
    low, high = np.quantile(t, [tail, 1 - tail])
    return mean - high * error, mean - low * error


_COLUMNS = [
    *("repeats", "regret", "reference_regret"),
    *("difference", "difference_low", "difference_high"),
    *("ratio", "ratio_low", "ratio_high", "p_value"),
]


def _row(ours: FloatArray, theirs: FloatArray, rng: np.random.Generator) -> list[float]:
    difference = ours - theirs
    low, high = bootstrap_interval(difference, rng)
    ratio = ratio_low = ratio_high = np.nan
    if min(ours.min(), theirs.min()) > 0:
        logs = np.log(ours / theirs)
        ratio = float(np.exp(logs.mean()))
        ratio_low, ratio_high = np.exp(bootstrap_interval(logs, rng))
    return [
        *(len(ours), ours.mean(), theirs.mean(), difference.mean(), low, high),
        *(ratio, ratio_low, ratio_high, _t_test(difference)),
    ]


def _t_test(difference: FloatArray) -> float:
    """Return the two-sided p-value of Student's t-test that the mean is 0."""
    n = len(difference)
    if n < 2:
        return np.nan
    error = difference.std(ddof=1) / np.sqrt(n)
    if error == 0:
        return 1.0 if difference[0] == 0 else 0.0
    return float(2 * stdtr(n - 1, -abs(difference.mean() / error)))
