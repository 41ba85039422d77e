"""One policy on one problem: a table with one row per round."""

from __future__ import annotations

import math
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from oclok.bench.problems.base import Problem, Round, fresh_seed
from oclok.bench.problems.groups import GroupRound
from oclok.errors import InputError
from oclok.extras import needs
from oclok.policies.base import Policy
from oclok.policies.gp import GPPolicy
from oclok.policies.oclok import OClokUCB
from oclok.policies.tcgp_ucb import TCGPUCB

if TYPE_CHECKING:
    import pandas as pd

#: Levels of the calibration curve, in percent.
PERCENTS = (10, 20, 30, 40, 50, 60, 70, 80, 90)

#: Columns of the table, by attribute of a certificate.
_CERTIFICATE = {
    "from_widths": "certificate_widths",
    "from_information": "certificate_information",
    "information_gain": "information_gain",
    "largest_eigenvalue": "largest_eigenvalue",
}


def simulate(policy: Policy, problem: Problem, seed: int | np.random.SeedSequence) -> pd.DataFrame:
    """Let `policy` play all rounds of `problem` and return one row per round.

    Args:
        policy: learns as it goes. One that has played rounds before is an error, as what it
            learned there would leak into this simulation; `observe` is fine for a warm start.
        problem: the rounds. Where base arms come in groups (`Groups`), a `TCGPUCB` sees the groups
            and both outcomes; any other policy sees neither.
        seed: of the noise, which is the same for every policy.

    Returns:
        A table with the columns

        - `round`: t, from 1 on,
        - `reward`: U of the outcomes,
        - `expected_reward`: u of the true means of the chosen base arms,
        - `best_expected_reward`: what the round's own oracle reaches given the true means,
        - `regret`: `best_expected_reward` minus `expected_reward`,
        - `alpha_regret`: α times the optimum minus `expected_reward`; NaN where it is not known,
        - `seconds`: that the policy took, to select and to update,
        - `arms`, `chosen`: how many base arms there were, and were chosen,
        - `certificate_widths`, `certificate_information`: the policy's own bounds on its regret
          so far, with `information_gain`, `largest_eigenvalue` and `delta` behind them,
        - `in_band`: 1 where the true means of all base arms were within the policy's confidence
          band (Lemma 1), 0 where not. These six are NaN for a policy without a certificate,
        - `coverage_10`, …, `coverage_90`: share of all outcomes so far within the central interval
          of that level that the posterior predicted; NaN for a policy without a posterior,
        - with groups, `groups_chosen` and `group_violations`: of how many groups base arms were
          chosen, and how many of these are not good enough, as all of the benchmark's are.

        Its `attrs` say which `policy`, `problem` and `data` it is of, with the problem's `notes`.

    Examples:
        >>> from oclok.policies.random import Random
        >>> from oclok.bench import Crowdsourcing
        >>> table = simulate(Random(seed=0), Crowdsourcing(rounds=3), seed=0)
        >>> table["round"].tolist(), bool((table["regret"] >= 0).all())
        ([1, 2, 3], True)
    """
    with needs("bench"):
        import pandas as pd
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
    if not isinstance(current, Round):
        raise InputError(f"a problem must be made of oclok.bench.Round; got {current!r}")
    select, play = partial(policy.select, current.contexts, current.oracle), current.play
    if isinstance(policy, TCGPUCB) and isinstance(current, GroupRound):
        select = partial(select, groups=current.groups, threshold=current.threshold)
        play = current.play_both
    in_band = _in_band(policy, current)
    best_super_arm = current.best()

    start = perf_counter()
    decision = select()
    seconds = perf_counter() - start

    outcomes = play(decision.super_arm, rng)  # (K,), or with those of the groups (K, 2)

    start = perf_counter()
    policy.update(decision, outcomes)
    seconds += perf_counter() - start

    means, oracle = current.means, current.oracle
    expected = oracle.value(means, decision.super_arm)
    best = oracle.value(means, best_super_arm)
    optimum = best if current.exact is oracle else math.nan  # opt(f_t), if known
    if current.exact is not None and current.exact is not oracle:
        optimum = oracle.value(means, current.exact(means))
    return {
        "reward": current.reward(decision.super_arm, outcomes.reshape(len(decision), -1)[:, 0]),
        "expected_reward": expected,
        "best_expected_reward": best,
        "regret": best - expected,
        "alpha_regret": oracle.alpha * optimum - expected,
        "seconds": seconds,
        "arms": len(means),
        "chosen": len(decision),
        **_believed(policy, oracle.lipschitz, in_band),
        **current.columns(decision.super_arm),
    }


def _in_band(policy: Policy, current: Round) -> float:
    """Return whether all true means lie within the band of the policy's next round."""
    if not isinstance(policy, OClokUCB):
        return math.nan
    mean, std = policy.posterior.predict(current.contexts)
    width = math.sqrt(policy.beta(policy.round + 1, len(mean)))
    return float(np.all(np.abs(current.means - mean) <= width * std))


def _believed(policy: Policy, lipschitz: float | None, in_band: float) -> dict[str, float]:
    """Return what the policy knows of its regret so far, and how far it deserves belief."""
    certificate = regret = None
    shares: dict[float, float] = {}
    if isinstance(policy, OClokUCB) and lipschitz is not None:
        certificate = policy.certificate()
    if isinstance(policy, GPPolicy):
        regret = policy.regret()
        shares = policy.calibration(tuple(percent / 100 for percent in PERCENTS)).coverage
    return {
        **{column: getattr(certificate, name, math.nan) for name, column in _CERTIFICATE.items()},
        "delta": policy.delta if isinstance(policy, OClokUCB) else math.nan,
        **{f"regret_{n}": getattr(regret, n, math.nan) for n in ("median", "lower", "upper")},
        "in_band": in_band,
        **{f"coverage_{p}": shares.get(p / 100, math.nan) for p in PERCENTS},
    }
