"""One policy on one problem: a table with one row per round."""

from __future__ import annotations

import math
from time import perf_counter

import numpy as np

from oclok.bench.problems.base import Problem, Round, fresh_seed
from oclok.bench.problems.groups import GroupRound
from oclok.decision import Decision
from oclok.errors import InputError
from oclok.extras import needs
from oclok.policies.base import Policy
from oclok.policies.gp import GPPolicy
from oclok.policies.oclok import OClokUCB
from oclok.policies.tcgp_ucb import TCGPUCB
from oclok.typing import FloatArray

with needs("bench"):
    import pandas as pd

#: Levels of the calibration curve.
PERCENTS = (10, 20, 30, 40, 50, 60, 70, 80, 90)


def simulate(policy: Policy, problem: Problem, seed: int | np.random.SeedSequence) -> pd.DataFrame:
    """Let `policy` play all rounds of `problem` and return what came of it.

    Args:
        policy: learns as it goes. One that has played rounds before is an error, as what it
            learned there would leak into this simulation; `observe` is fine for a warm start.
        problem: the rounds. Where base arms come in groups (`Groups`), a `TCGPUCB`
            is told of the groups and gets both outcomes; any other policy gets neither.
        seed: where the noise of the outcomes comes from. With the same seed, a base arm has the
            same outcome in a round whichever policy chooses it.

    Returns:
        One row per round, with the columns

        - `round`: t, from 1 on,
        - `reward`: U of the outcomes,
        - `expected_reward`: u of the true means of the chosen base arms,
        - `best_expected_reward`: what the round's own oracle reaches given the true means,
        - `regret`: `best_expected_reward` minus `expected_reward`,
        - `alpha_regret`: α times the best there is minus `expected_reward`; NaN where the best
          is not known,
        - `seconds`: that the policy took, to select and to update,
        - `arms`, `chosen`: how many base arms there were, and were chosen,
        - `certificate_widths`, `certificate_information`: the policy's own bounds on its regret
          so far, with `information_gain` and `largest_eigenvalue` behind them, and `delta`, the
          policy's δ,
        - `in_band`: 1 where the true means of all base arms were within the policy's confidence
          band (Lemma 1), 0 where not. These six are NaN for a policy without a certificate,
        - `coverage_10`, …, `coverage_90`: share of all outcomes so far within the central interval
          of that many percent that the posterior foresaw; NaN for a policy without a posterior,
        - with groups, `groups_chosen` and `group_violations`: of how many groups base arms were
          chosen, and how many of these are not good enough. The benchmark chooses from groups that
          are, so that `regret` can be below 0 for a policy that does not.

        Its `attrs` say which `policy`, `problem` and `data` it is of, with the problem's `notes`.

    Examples:
        >>> from oclok.policies.random import Random
        >>> from oclok.bench.problems import Crowdsourcing
        >>> table = simulate(Random(seed=0), Crowdsourcing(rounds=3), seed=0)
        >>> table["round"].tolist(), bool((table["regret"] >= 0).all())
        ([1, 2, 3], True)
    """
    _check(policy, problem)
    seeds = fresh_seed(seed).spawn(len(problem))
    rows = [
        {"round": t, **_play(policy, current, np.random.default_rng(seeds[t - 1]))}
        for t, current in enumerate(problem, start=1)
    ]
    table = pd.DataFrame(rows)
    table.attrs = {
        "policy": type(policy).__name__,
        "problem": problem.name,
        "data": problem.data_name,
        "notes": problem.notes,
    }
    return table


def _check(policy: Policy, problem: Problem) -> None:
    wanted = "simulate takes (policy, problem, seed)"
    if not isinstance(policy, Policy):
        raise InputError(f"{wanted}: policy must be an oclok.policies.Policy; got {policy!r}")
    if not isinstance(problem, Problem):
        raise InputError(f"{wanted}: problem must be an oclok.bench.Problem; got {problem!r}")
    if policy.round > 0:
        raise InputError(
            f"the policy has played {policy.round} rounds before, and what it learned would leak "
            "into this simulation; make a fresh one for each"
        )


def _play(policy: Policy, current: Round, rng: np.random.Generator) -> dict[str, float]:
    """Play one round; return its row."""
    if not isinstance(current, Round):
        raise InputError(f"a problem must be made of oclok.bench.Round; got {current!r}")
    in_band = _in_band(policy, current)
    best_super_arm = current.best()

    start = perf_counter()
    decision = _select(policy, current)
    seconds = perf_counter() - start

    outcomes = _outcomes(policy, current, decision, rng)

    start = perf_counter()
    policy.update(decision, outcomes)
    seconds += perf_counter() - start

    means, oracle = current.means, current.oracle
    expected = oracle.value(means, decision.super_arm)
    best = oracle.value(means, best_super_arm)
    rewarded = outcomes[:, 0] if outcomes.ndim == 2 else outcomes
    return {
        "reward": current.reward(decision.super_arm, rewarded),
        "expected_reward": expected,
        "best_expected_reward": best,
        "regret": best - expected,
        "alpha_regret": oracle.alpha * _optimum(current, best) - expected,
        "seconds": seconds,
        "arms": len(means),
        "chosen": len(decision),
        **_certificate(policy, oracle.lipschitz),
        **_believed(policy),
        "in_band": in_band,
        **_coverage(policy),
        **current.columns(decision.super_arm),
    }


def _select(policy: Policy, current: Round) -> Decision:
    if isinstance(policy, TCGPUCB) and isinstance(current, GroupRound):
        return policy.select(
            current.contexts, current.oracle, groups=current.groups, threshold=current.threshold
        )
    return policy.select(current.contexts, oracle=current.oracle)


def _outcomes(
    policy: Policy, current: Round, decision: Decision, rng: np.random.Generator
) -> FloatArray:
    """Return what the policy sees: outcomes (K,), or with those of the groups (K, 2)."""
    if isinstance(policy, TCGPUCB) and isinstance(current, GroupRound):
        return current.play_both(decision.super_arm, rng)
    return current.play(decision.super_arm, rng)


def _in_band(policy: Policy, current: Round) -> float:
    """Return whether all true means lie within the band of the policy's next round."""
    if not isinstance(policy, OClokUCB):
        return math.nan
    mean, std = policy.posterior.predict(current.contexts)
    width = math.sqrt(policy.beta(policy.round + 1, len(mean)))
    return float(np.all(np.abs(current.means - mean) <= width * std))


def _certificate(policy: Policy, lipschitz: float | None) -> dict[str, float]:
    names = ("from_widths", "from_information", "information_gain", "largest_eigenvalue")
    columns = ("certificate_widths", "certificate_information", *names[2:])
    delta = policy.delta if isinstance(policy, OClokUCB) else math.nan
    if not isinstance(policy, OClokUCB) or lipschitz is None:
        return dict.fromkeys(columns, math.nan) | {"delta": delta}
    certificate = policy.certificate()
    values = (getattr(certificate, name) for name in names)
    return dict(zip(columns, values, strict=True)) | {"delta": delta}


def _believed(policy: Policy) -> dict[str, float]:
    """Return the regret so far as the policy's posterior sees it: median and 95% interval."""
    names = ("median", "lower", "upper")
    told = policy.regret() if isinstance(policy, GPPolicy) else None
    return {f"regret_{name}": math.nan if told is None else getattr(told, name) for name in names}


def _coverage(policy: Policy) -> dict[str, float]:
    levels = tuple(percent / 100 for percent in PERCENTS)
    shares = dict.fromkeys(levels, math.nan)
    if isinstance(policy, GPPolicy):
        shares = policy.calibration(levels).coverage
    return {f"coverage_{p}": shares[level] for p, level in zip(PERCENTS, levels, strict=True)}


def _optimum(current: Round, best: float) -> float:
    """Return opt(f_t), which is `best` where the round's own oracle is exact."""
    if current.exact is None:
        return math.nan
    if current.exact is current.oracle:
        return best
    return current.oracle.value(current.means, current.exact(current.means))
