"""Whether an agent is well: findings in plain words, worst first."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oclok.agent.decisions import Status
from oclok.agent.feedback import PATIENCE, Feedback
from oclok.agent.schema import Category, Ignored, Number, Schema
from oclok.persistence import Persistent
from oclok.typing import FloatArray

LOG = logging.getLogger("oclok.agent")
SEVERITIES = ("error", "warning", "info")

#: Fewer outcomes, residuals or arms say nothing.
LEAST_OUTCOMES, LEAST_ARMS = 50, 200
#: A finding happens by chance less often than this: health is examined often.
CHANCE = 1e-5
#: Drift: residuals that grow by less than this factor are no finding, however certain.
NOTABLE = 1.5
#: Drift: blocks of LATE residuals are compared with up to COMPARED_WITH before them, back to
#: MOST_RESIDUALS.
LATE, COMPARED_WITH, MOST_RESIDUALS = 100, 1_000, 5_000
#: Mean of |z| where the model is right.
USUAL = math.sqrt(2 / math.pi)
#: Least share of late arms outside of a feature's range that is a finding.
MOVED = 0.1
#: Least share of outcomes that never came that is a finding: the rest may not speak for all.
LOST = 0.5
#: The range of each column is that of the first REFERENCE arms; values may leave it by TOLERANCE
#: times its width.
REFERENCE, TOLERANCE = 1_000, 0.25
#: Weight of the latest decision in the running share of arms outside.
DECAY = 0.05


@dataclass(frozen=True)
class Finding:
    """Something that the operator of an agent should know.

    Attributes:
        kind: "calibration", "certificate", "drift", "quarantine", "constant", "range", "category",
            "ignored", "late" or "lost".
        severity: "error", "warning" or "info".
        message: what was found.
        advice: what to do about it.
        subject: the feature that it is about, if it is about one.
    """

    kind: str
    severity: Literal["error", "warning", "info"]
    message: str
    advice: str = ""
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.message}; {self.advice}" if self.advice else self.message


def examine(
    feedback: Feedback, schema: Schema | None, watch: FeatureWatch | None, now: float
) -> list[Finding]:
    """Return the findings on an agent, worst first; empty when all is well."""
    findings = [*_model(feedback), *_outcomes(feedback), *_waiting(feedback, now)]
    if schema is not None and watch is not None:
        findings += feature_findings(schema, watch)
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def report(findings: list[Finding], known: list[str]) -> list[str]:
    """Log findings that are not `known`, one line each, and return all that are known now."""
    for finding in findings:
        key = f"{finding.kind} {finding.subject}"
        if key not in known:
            level = getattr(logging, finding.severity.upper())
            LOG.log(level, "%s: %s", finding.kind, finding)
            known = [*known, key]
    return known


def _model(feedback: Feedback) -> Iterator[Finding]:
    policy = feedback.policy
    judged = policy.calibration() if hasattr(policy, "calibration") else None
    if judged is not None and judged.is_contradicted:
        yield Finding(
            "calibration",
            "warning",
            f"the model is overconfident: outcomes are {judged.spread:.2g} times as far from what "
            "it expects as it says",
            "look for a default outcome that is unlike the others, rare outcomes far from the "
            "rest, or a given kernel or noise that does not fit",
        )
    certificate = policy.certificate() if hasattr(policy, "certificate") else None
    for assumed in getattr(certificate, "assumptions", ()):
        if assumed.name == "prior" and assumed.verdict == "contradicted":
            yield Finding(
                "certificate",
                "warning",
                "the data contradict what the policy's regret certificate rests on, so that it "
                f"means nothing: {assumed.statement} ({assumed.reason})",
            )
    yield from _drift(getattr(policy, "residuals", np.empty(0))[-MOST_RESIDUALS:])


def _drift(residuals: FloatArray) -> Iterator[Finding]:
    """Compare each block of LATE residuals, the latest first, with up to COMPARED_WITH before it.

    Their mean shows outcomes that moved, the mean of their absolute values a model that is off.
    """
    for block in range(len(residuals) // LATE - 2):
        end = len(residuals) - LATE * block
        start = end - LATE
        new, old = residuals[start:end], residuals[max(start - COMPARED_WITH, 0) : start]
        mean = float(new.mean())
        if abs(mean) > NOTABLE - 1 and _differ(new, old):
            what = f"{'above' if mean > 0 else 'below'} what the model expects, unlike those before"
        elif np.abs(new).mean() > NOTABLE * USUAL and _differ(np.abs(new), np.abs(old)):
            what = "further from what the model expects than those before"
        else:
            continue
        if block == 0:
            when = f"the latest {LATE} outcomes are {what}: the world may have changed"
            yield Finding("drift", "warning", when, "consider a policy that forgets")
            return
        yield Finding(
            "drift",
            "info",
            f"{LATE} outcomes about {LATE * block:,} outcomes ago were {what}: the world may have "
            "changed then, and those since are as the model expects",
        )
        return


def _differ(new: FloatArray, old: FloatArray) -> bool:
    """Return whether two means differ by more than chance explains (Welch's test)."""
    from scipy.special import stdtr

    n, m = len(new) - 1, len(old) - 1
    a, b = max(new.var(), 1e-12) / n, max(old.var(), 1e-12) / m  # squared standard errors
    freedom = (a + b) ** 2 / (a**2 / n + b**2 / m)
    distance = np.abs(new.mean() - old.mean()) / np.sqrt(a + b)
    return bool(2 * stdtr(freedom, -distance) < CHANCE)


def _outcomes(feedback: Feedback) -> Iterator[Finding]:
    quarantined = list(feedback.decisions.with_status(Status.QUARANTINED))
    if quarantined:
        decision, arm, outcome = quarantined[-1]
        yield Finding(
            "quarantine",
            "warning",
            "outcomes that cannot be right given the others were not learned: "
            f"{len(quarantined)}, lately {outcome:g} of arm {arm!r} in decision {decision!r}",
            "accept() learns one of them, outcome_range= says what is possible",
        )
    learned, forgotten = feedback.learned, feedback.decisions.tally[Status.NEVER_CAME]
    if learned + forgotten >= LEAST_OUTCOMES and forgotten > LOST * (learned + forgotten):
        yield Finding(
            "lost",
            "warning",
            f"{forgotten / (learned + forgotten):.0%} of outcomes did not come before their "
            "deadline",
            "consider a default_outcome: if lost outcomes differ from the others, the model is "
            "misled",
        )


def _waiting(feedback: Feedback, now: float) -> Iterator[Finding]:
    if feedback.deadline is None and (late := feedback.overdue(now)):
        yield Finding(
            "late",
            "info",
            f"decisions that wait {PATIENCE:g} times as long as 95% of outcomes took "
            f"({_duration(feedback.usual_delay)}): {len(late)}, the oldest is {late[0]!r}",
            "a deadline= would settle them",
        )


def feature_findings(schema: Schema, watch: FeatureWatch) -> Iterator[Finding]:
    """Yield findings on the features of the arms so far."""
    for name, feature in schema.features.items():
        if isinstance(feature, Ignored) and not feature.declared:
            yield Finding(
                "ignored",
                "info",
                f"feature {name!r} has a different text for nearly every arm and is not used",
                "declare it as a category to use it, or as ignored",
                name,
            )
    if watch.arms < LEAST_ARMS or watch.decisions < 2:
        return
    varies = watch.high > watch.low
    for name, feature in schema.features.items():
        columns = schema.slices[name]
        if feature.width and not varies[columns].any():
            message = f"feature {name!r} never varied"
            yield Finding("constant", "info", message, "leave it out", name)
        outside = watch.outside[columns]
        if isinstance(feature, Number) and (share := outside.max()) > MOVED:
            yield Finding(
                "range",
                "warning",
                f"feature {name!r} left the range of the first arms for {share:.0%} of late arms",
                "check its unit; what the model says of them is a guess",
                name,
            )
        if isinstance(feature, Category) and feature.buckets:
            first = len(feature.values or ())
            # A value without a column is in two buckets.
            share = outside[first : first + feature.buckets].sum() / 2
            if share > MOVED:
                yield Finding(
                    "category",
                    "info",
                    f"feature {name!r} has values that the first arms did not have for {share:.0%} "
                    "of late arms",
                    "declare all of its values to tell them apart well",
                    name,
                )


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds" if math.isfinite(seconds) else "a while"


class FeatureWatch(Persistent):
    """Ranges of encoded features, and how often arms leave them.

    Attributes:
        arms, decisions: number of arms so far, and of the decisions that offered them.
        low, high: range of each column among the first REFERENCE arms; shape (D,).
        outside: share of late arms outside of it, an exponential moving average; shape (D,).
    """

    def __init__(self, dimension: int) -> None:
        self.arms = 0
        self.decisions = 0
        self.low = np.full(dimension, np.inf)
        self.high = np.full(dimension, -np.inf)
        self.outside = np.zeros(dimension)

    def record(self, contexts: FloatArray) -> None:
        """Note the arms of one decision, shape (M, D)."""
        low, high = contexts.min(axis=0), contexts.max(axis=0)
        if self.arms < REFERENCE:
            np.minimum(self.low, low, out=self.low)
            np.maximum(self.high, high, out=self.high)
        else:
            margin = TOLERANCE * (self.high - self.low)
            bottom, top = self.low - margin, self.high + margin
            share = np.zeros(len(low))
            for column in np.flatnonzero((low < bottom) | (high > top)).tolist():
                x = contexts[:, column]
                share[column] = np.mean((x < bottom[column]) | (x > top[column]))
            self.outside += DECAY * (share - self.outside)
        self.arms += len(contexts)
        self.decisions += 1
