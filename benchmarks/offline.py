"""Offline evaluation: how often intervals cover the truth, over many simulated logs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.dummy import DummyRegressor

from benchmarks.report import Result, Row, Target, say
from oclok import Decision
from oclok.offline import Estimate, Log, LoggedRound, doubly_robust, replay
from oclok.oracles import Oracle, TopK
from oclok.policies import C2UCB, Belief, Policy

M, K = 4, 2
EPSILON = 0.5
#: Coverage may differ from its nominal level, 95%, by this much.
TOLERANCE = 0.02


def f(contexts: np.ndarray) -> np.ndarray:
    """Return the mean outcomes, which no linear model gets right."""
    return np.sin(3 * contexts[..., 0]) + contexts[..., 1] ** 2


def noisy(contexts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return outcomes, whose noise is skewed and grows with the first feature."""
    scale = 0.5 * (1 + contexts[..., 0])
    return f(contexts) + scale * (rng.exponential(size=contexts.shape[:-1]) - 1)


def wanted(contexts: np.ndarray) -> np.ndarray:
    """Return the index of the policy that is evaluated."""
    return contexts[..., 0] - (contexts[..., 1] - 0.5) ** 2


class Fixed(Policy):
    """A policy that never learns."""

    def _score(self, contexts: np.ndarray, t: int, rng: np.random.Generator) -> Belief:
        return Belief(wanted(contexts))

    def _learn(self, contexts: np.ndarray, outcomes: np.ndarray) -> None:
        pass


def arms(rng: np.random.Generator) -> np.ndarray:
    """Return the contexts of a round."""
    return rng.random((M, 2))


def log(rounds: int, is_uniform: bool, oracle: Oracle, rng: np.random.Generator) -> Log:
    """Return a log of a policy that chooses uniformly, or by x² but for a share ε of rounds."""
    return Log(_logged(is_uniform, oracle, rng) for _ in range(rounds))


def _logged(is_uniform: bool, oracle: Oracle, rng: np.random.Generator) -> LoggedRound:
    X = arms(rng)
    greedy = np.sort(np.argsort(-X[:, 1])[:K])
    explores = 1.0 if is_uniform else EPSILON
    super_arm = greedy
    if rng.random() < explores:
        super_arm = np.sort(rng.choice(M, K, replace=False))
    p = np.full(M, explores * K / M)
    p[greedy] += 1 - explores
    P = explores / math.comb(M, K) + (1 - explores) * np.array_equal(super_arm, greedy)
    return LoggedRound(X, super_arm, noisy(X, rng)[super_arm], oracle, p, P)


def true_value(oracle: TopK, rng: np.random.Generator, draws: int = 1_000_000) -> float:
    """Return the expected reward of `Fixed` by plain Monte Carlo."""
    X = rng.random((draws, M, 2))
    best = np.argpartition(-wanted(X), K - 1, axis=1)[:, :K]
    sums = np.take_along_axis(noisy(X, rng), best, axis=1).sum(axis=1)
    return float((sums if oracle.reward is None else oracle.reward(sums)).mean())


def live_value(rounds: int, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Return the mean reward of C2UCB over its first 1, 2, … rounds live, averaged over runs."""
    rewards = np.empty((runs, rounds))
    for run in range(runs):
        policy = C2UCB(TopK(K))
        for t in range(rounds):
            X = arms(rng)
            decision = policy.select(X)
            outcomes = noisy(X, rng)[decision.super_arm]
            policy.update(decision, outcomes)
            rewards[run, t] = outcomes.sum()
    return rewards.mean(axis=0).cumsum() / np.arange(1, rounds + 1)


class Traced(C2UCB):
    """C2UCB that notes the expected reward of each of its decisions."""

    trace: list[float] = []  # noqa: RUF012  (shared with the copies that replay makes)

    def select(self, contexts: np.ndarray, oracle: Oracle | None = None) -> Decision:
        """Select, and note what the decision is worth."""
        decision = super().select(contexts, oracle)
        self.trace.append(float(f(decision.contexts).sum()))
        return decision


SUM, TANH = TopK(K), TopK(K, reward=np.tanh)
WRONG = DummyRegressor(strategy="constant", constant=5.0)


@dataclass(frozen=True)
class Case:
    """An estimator on logs of so many rounds."""

    name: str
    rounds: int
    evaluate: Callable[[Log], Estimate]
    policy: str = "fixed"
    has_target: bool = True


FIXED = Fixed()
BY_ARMS = (
    Case("doubly robust, arms", 20, lambda g: doubly_robust(FIXED, g), has_target=False),
    Case("doubly robust, arms", 150, lambda g: doubly_robust(FIXED, g)),
    Case("replay, arms", 150, lambda g: replay(FIXED, g, match="arms")),
)
UNIFORM = (
    *BY_ARMS,
    Case("replay, super arms", 60, lambda g: replay(FIXED, g), has_target=False),
    Case("replay, super arms", 240, lambda g: replay(FIXED, g)),
    Case("replay, super arms", 240, lambda g: replay(C2UCB(), g), "C2UCB"),
    Case("replay, arms", 150, lambda g: replay(Traced(), g, match="arms"), "C2UCB"),
    Case("doubly robust, super arms", 240, lambda g: doubly_robust(FIXED, g, match="super_arm")),
)
GREEDY = (
    *BY_ARMS,
    Case("doubly robust, arms, q = 5", 150, lambda g: doubly_robust(FIXED, g, regressor=WRONG)),
    Case("replay, super arms", 480, lambda g: replay(FIXED, g)),
    Case("doubly robust, super arms", 480, lambda g: doubly_robust(FIXED, g, match="super_arm")),
)
BENT = (
    Case(
        "doubly robust, super arms, tanh of the sum",
        240,
        lambda g: doubly_robust(FIXED, g, match="super_arm"),
    ),
)


def run(quick: bool) -> Result:
    logs = 20 if quick else 1000
    rows: list[Row] = []
    targets: list[Target] = []
    for number, (logged, oracle, cases) in enumerate(
        (("uniformly", SUM, UNIFORM), ("ε-greedily", SUM, GREEDY), ("uniformly", TANH, BENT))
    ):
        say(f"offline: logged {logged}")
        seeds = np.random.SeedSequence([2027, number]).spawn(logs + 1)
        for case, row in zip(cases, _rows(cases, logged, oracle, seeds), strict=True):
            rows.append(row)
            if case.has_target:
                name = f"{case.name}, {logged}, {case.policy}: 95% interval is off by"
                off = abs(row["covers"] - 0.95)
                targets.append(Target(name, TOLERANCE, off, at_most=True))
    return Result(
        "Offline: coverage of the true value",
        rows,
        targets,
        f"{logs} logs each; 2 of 4 base arms, skewed noise. The truth of the fixed policy is "
        "by Monte Carlo; that of C2UCB the mean of 400 live runs of as many rounds as matched "
        "(super arms), or the mean over all logs of what its decisions were worth (arms). Rows "
        "with few rounds show why `LEAST_EFFECTIVE` is what it is, and have no target.",
    )


def _rows(
    cases: tuple[Case, ...], logged: str, oracle: TopK, seeds: list[np.random.SeedSequence]
) -> list[Row]:
    rng = np.random.default_rng(seeds[0])
    truth = true_value(oracle, rng)
    learns = any(case.policy != "fixed" for case in cases)
    live = live_value(90 if learns else 0, 400, rng)
    longest = max(case.rounds for case in cases)
    estimates: list[list[Estimate]] = [[] for _ in cases]
    worth: list[float] = []
    for done, seed in enumerate(seeds[1:], start=1):
        data = log(longest, logged == "uniformly", oracle, np.random.default_rng(seed))
        for case, so_far in zip(cases, estimates, strict=True):
            Traced.trace.clear()
            so_far.append(case.evaluate(data[: case.rounds]))
            worth += [float(np.mean(Traced.trace))] if Traced.trace else []
        if done % 50 == 0:
            say(f"offline: {done} logs")
    rows = []
    for case, found in zip(cases, estimates, strict=True):
        true = np.full(len(found), truth if case.policy == "fixed" else np.mean(worth or [0]))
        if case.policy != "fixed" and "super" in case.name:
            true = live[[e.matched - 1 for e in found]]
        rows.append(_row(case, logged, found, true))
    return rows


def _row(case: Case, logged: str, found: list[Estimate], truth: np.ndarray) -> Row:
    lower, value, upper = np.array([(e.lower, e.value, e.upper) for e in found]).T
    error = value - truth
    return {
        "estimate": case.name,
        "logged": logged,
        "policy": case.policy,
        "rounds": case.rounds,
        "worth": float(np.mean([e.effective_sample_size for e in found])),
        "warned": float(np.mean([bool(e.warnings) for e in found])),
        "bias, standard errors": float(
            np.nanmean(error) / np.nanstd(error) * math.sqrt(error.size)
        ),
        "width": float(np.nanmean(upper - lower)),
        "covers": float(((lower <= truth) & (truth <= upper)).mean()),
        "truth below": float((truth < lower).mean()),
        "truth above": float((upper < truth).mean()),
    }
