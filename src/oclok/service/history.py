"""What happened to an agent over time: decisions and outcomes of equal steps, counted here.

    e_i, s_i   mean and std of f that was believed of arm i when it was chosen
    σ_i        std of the noise that was believed in then
    n          outcomes of a step

The mean outcome of a step is expected at Σ e_i / n, within ±1.96 √((Σ s_i / n)² + Σ σ_i² / n²):
errors of f may be shared by all arms of a step, noise is independent.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from oclok.agent.decisions import KNOWN, Status
from oclok.agent.decisions import History as Kept
from oclok.service.answers import History, Totals
from oclok.service.replica import Replica
from oclok.typing import FloatArray, IntArray

Range = Literal["hour", "day", "week", "all"]
#: Seconds and number of steps of each range.
RANGES: dict[Range, tuple[float, int]] = {
    "hour": (3_600.0, 60),
    "day": (86_400.0, 96),
    "week": (604_800.0, 84),
    "all": (math.inf, 100),
}
#: A range is no shorter than this, and starts no earlier than the agent.
LEAST_SECONDS = 60.0
#: Significant digits of the numbers in lists.
DIGITS = 5


def history(replica: Replica, name: Range, now: float) -> History:
    """Return what happened in a range of time that ends `now`."""
    seconds, steps = RANGES[name]
    start = max(now - seconds, min(replica.created, now - LEAST_SECONDS))
    kept = replica.agent.history(start)
    if name == "all" and len(kept.decided):
        start = min(float(kept.decided[0]), now - LEAST_SECONDS)
    seconds = now - start
    step = seconds / steps
    place = np.floor((kept.decided - start) / step).astype(np.int64)  # of each decision
    place[place == steps] = steps - 1  # decided just now
    arm = place[kept.row]
    is_in = (arm >= 0) & (arm < steps)
    is_known = is_in & np.isin(kept.status, KNOWN)
    outcomes = np.bincount(arm[is_known], minlength=steps)
    sums = np.bincount(arm[is_known], kept.outcomes[is_known], steps)
    decisions = np.bincount(place[(place >= 0) & (place < steps)], minlength=steps)
    lost = np.bincount(arm[is_in & (kept.status == Status.NEVER_CAME)], minlength=steps)
    return History(
        range=name,
        start=start,
        step=step,
        decisions=decisions.tolist(),
        outcomes=outcomes.tolist(),
        never_came=lost.tolist(),
        mean=_rounded(_ratio(sums, outcomes)),
        **_expected(kept, arm, is_known, steps, replica.outcome_range),
        total=_total(kept, is_in, is_known, int(decisions.sum()), seconds),
        remembered=len(kept.ids),
    )


def _expected(
    kept: Kept, arm: IntArray, is_known: Any, steps: int, limits: tuple[float, float]
) -> dict[str, list[float | None]]:
    """Return what was expected of outcomes that are known by now, and its 95% band."""
    at = np.flatnonzero(is_known & np.isfinite(kept.mean) & np.isfinite(kept.noise[kept.row]))
    where = arm[at]
    n = np.bincount(where, minlength=steps)
    mean = _ratio(np.bincount(where, kept.mean[at], steps), n)
    std = _ratio(np.bincount(where, kept.std[at], steps), n)
    noise = np.bincount(where, kept.noise[kept.row[at]].astype(float) ** 2, steps)
    width = 1.96 * np.sqrt(std**2 + _ratio(_ratio(noise, n), n))
    return {
        "expected": _rounded(np.clip(mean, *limits)),
        "lower": _rounded(np.clip(mean - width, *limits)),
        "upper": _rounded(np.clip(mean + width, *limits)),
    }


def _total(kept: Kept, is_in: Any, is_known: Any, decisions: int, seconds: float) -> Totals:
    counts = np.bincount(kept.status[is_in], minlength=len(Status))
    y = kept.outcomes[is_known]
    error = float(y.std() / math.sqrt(len(y))) if len(y) > 1 else None
    return Totals(
        decisions=decisions,
        per_minute=60 * decisions / seconds,
        mean_outcome=float(y.mean()) if len(y) else None,
        mean_error=error,
        **{status.word: int(counts[status]) for status in Status},
    )


def _ratio(sums: Any, counts: IntArray) -> FloatArray:
    """Return sums / counts; NaN where there is nothing."""
    ratio = np.full(len(counts), np.nan)
    np.divide(sums, counts, out=ratio, where=counts > 0)
    return ratio


def _rounded(values: FloatArray) -> list[float | None]:
    return [float(f"{x:.{DIGITS}g}") if math.isfinite(x) else None for x in values.tolist()]
