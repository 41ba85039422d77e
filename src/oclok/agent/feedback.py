"""Outcomes by decision and arm: learned exactly once, corrected, defaulted or quarantined.

The `Status` of a chosen arm's outcome:

    WAITING ──learn──────▶ LEARNED ◀──accept── QUARANTINED
       │                                            ▲
       ├──learn, implausible────────────────────────┘
       ├──deadline, default──▶ DEFAULTED
       └──deadline───────────▶ NEVER_CAME
    any but WAITING ──correct──▶ CORRECTED

The model learns first and the status is set right after, so that an error leaves both as they were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from oclok.agent.arms import NUMBERS, ArmId, as_id, is_missing
from oclok.agent.decisions import KNOWN, Decisions, Record, Status
from oclok.agent.plausibility import implausible
from oclok.errors import FeedbackError, InputError, OclokError, OutcomeError
from oclok.persistence import Persistent
from oclok.policies import Policy
from oclok.typing import BoolArray, FloatArray, IntArray
from oclok.validation import LARGEST_OUTCOME, as_positive, as_range

#: Settled decisions whose outcomes can still be repeated and corrected.
REMEMBERED = 100_000
#: Latest outcomes that new ones are compared with.
COMPARED_WITH = 1_000
#: The first JUDGED_AGAIN outcomes are judged again whenever others come: a wrong one among the
#: very first shows only later.
JUDGED_AGAIN = 50
#: Late = PATIENCE × the 95th percentile of delays, once LEAST_DELAYS are known.
PATIENCE, LEAST_DELAYS = 10.0, 50


@dataclass(frozen=True)
class Learned:
    """What became of the outcomes given to `learn`: each arm id is in one of the lists.

    Attributes:
        learned: new outcomes.
        repeated: known already, and ignored.
        corrected: replaced others.
        quarantined: cannot be right, and kept out of learning.
    """

    learned: list[ArmId] = field(default_factory=list)
    repeated: list[ArmId] = field(default_factory=list)
    corrected: list[ArmId] = field(default_factory=list)
    quarantined: list[ArmId] = field(default_factory=list)


class Feedback(Persistent):
    """Teaches a policy the outcomes of decisions by their ids; arguments as for `Agent`.

    Attributes:
        outcomes: the latest COMPARED_WITH outcomes, oldest first.
        delays: in seconds, of the latest COMPARED_WITH outcomes.
        observed: number of outcomes that belong to no decision.
    """

    def __init__(
        self,
        policy: Policy,
        outcome_range: tuple[float, float] | None,
        deadline: float | None,
        default_outcome: float | None,
    ) -> None:
        self.policy = policy
        self.outcome_range = as_range(outcome_range)
        self.set_deadline(deadline, default_outcome)
        self.decisions = Decisions(REMEMBERED)
        self.outcomes = self.delays = np.empty(0)
        self.observed = 0
        self._first: list[tuple[str, int]] = []

    def set_deadline(self, deadline: float | None, default_outcome: float | None) -> None:
        """Change the deadline and the outcome that is learned after it."""
        deadline = None if deadline is None else as_positive(deadline, "deadline")
        if default_outcome is not None:
            if deadline is None:
                raise InputError("default_outcome is learned after a deadline; give deadline=, too")
            low, high = self._limits
            if not (isinstance(default_outcome, Real) and low <= default_outcome <= high):
                raise InputError(
                    f"default_outcome must be a number between {low:g} and {high:g}; "
                    f"got {default_outcome!r}"
                )
            default_outcome = float(default_outcome)
        self.deadline, self.default_outcome = deadline, default_outcome

    @property
    def learned(self) -> int:
        """Number of outcomes that came, with those quarantined and observed."""
        came = (Status.LEARNED, Status.QUARANTINED, Status.DEFAULTED, Status.CORRECTED)
        return int(self.decisions.tally[list(came)].sum()) + self.observed

    def learn(
        self, decision: str, outcomes: Mapping[ArmId, float | None], correct: bool, now: float
    ) -> Learned:
        """Learn `{arm: outcome}` of a decision; see `Agent.learn`."""
        record = self.decisions.record(decision)
        new = self._checked(record, outcomes)
        places, y = np.array(list(new), dtype=np.intp), np.array(list(new.values()))
        is_first = record.status[places] == Status.WAITING
        is_same = ~is_first & (record.outcomes[places] == y)
        is_other = ~is_first & ~is_same
        if is_other.any() and not correct:
            raise _refused(record, int(places[np.argmax(is_other)]), new)
        is_bad = np.zeros(len(y), dtype=bool)
        is_bad[is_first] = self.implausible(record.contexts[places[is_first]], y[is_first])
        is_good = is_first & ~is_bad
        self._teach(record, places[is_good | is_other], y[is_good | is_other])
        if is_other.any():
            self.decisions.settle(
                decision, places[is_other], Status.CORRECTED, y[is_other], y[is_other]
            )
        if is_bad.any():
            self.decisions.settle(decision, places[is_bad], Status.QUARANTINED, y[is_bad], np.nan)
        self.outcomes = _latest(self.outcomes, y[is_first])
        waited = np.full(np.count_nonzero(is_first), now - record.decided)
        self.delays = _latest(self.delays, waited)
        self._judge_again(decision, places[is_first])

        def names(mask: BoolArray) -> list[ArmId]:
            return [record.arms[place] for place in places[mask].tolist()]

        return Learned(names(is_good), names(is_same), names(is_other), names(is_bad))

    def refusals(
        self, decision: str, outcomes: Mapping[ArmId, float | None], correct: bool
    ) -> dict[ArmId, str]:
        """Return which outcomes `learn` would refuse, and why; change nothing."""
        record = self.decisions.record(decision)
        refused = {}
        for arm, outcome in outcomes.items():
            try:
                for place, y in self._checked(record, {arm: outcome}).items():
                    is_known = record.status[place] != Status.WAITING
                    if is_known and record.outcomes[place] != y and not correct:
                        raise _refused(record, place, {place: y})
            except OclokError as reason:
                refused[arm] = str(reason)
        return refused

    def accept(self, decision: str, arm: ArmId) -> None:
        """Learn an outcome that was quarantined."""
        record = self.decisions.record(decision)
        place = _place(record, arm)
        if record.status[place] != Status.QUARANTINED:
            raise FeedbackError(
                f"decision {decision!r}: the outcome of arm {arm!r} is not quarantined"
            )
        self._teach(record, np.array([place]), record.outcomes[[place]])

    def observe(self, contexts: FloatArray, y: FloatArray, arms: list[ArmId]) -> None:
        """Learn outcomes that belong to no decision."""
        for arm, outcome in zip(arms, y.tolist(), strict=True):
            self._check_range(arm, outcome)
        wrong = self.implausible(contexts, y)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise OutcomeError(
                f"{np.count_nonzero(wrong)} of {len(y)} outcomes cannot be right given the others, "
                f"such as {y[place]:g} of arm {arms[place]!r}; leave them out, or give the agent "
                "an outcome_range"
            )
        self.policy.observe(contexts, y)
        self.outcomes = _latest(self.outcomes, y)
        self.observed += len(y)

    def expire(self, now: float) -> None:
        """Stop waiting for outcomes whose deadline has passed."""
        due = [] if self.deadline is None else self.decisions.due(now - self.deadline)
        if not due:
            return
        records = [self.decisions.record(decision) for decision in due]
        waiting = [np.flatnonzero(record.status == Status.WAITING) for record in records]
        status, y = Status.NEVER_CAME, math.nan
        if self.default_outcome is not None:
            status, y = Status.DEFAULTED, self.default_outcome
            X = np.vstack([r.contexts[places] for r, places in zip(records, waiting, strict=True)])
            defaults = np.full(len(X), y)
            self.policy.learn(X, defaults)
            self.outcomes = _latest(self.outcomes, defaults)
        for record, places in zip(records, waiting, strict=True):
            self.decisions.settle(record.id, places, status, y, y)

    @property
    def usual_delay(self) -> float:
        """The time, in seconds, that 95% of the latest outcomes took; infinite if few came."""
        few = len(self.delays) < LEAST_DELAYS
        return math.inf if few else float(np.quantile(self.delays, 0.95))

    def overdue(self, now: float) -> list[str]:
        """Return open decisions past the deadline or, without one, unusually old; oldest first."""
        patience = self.deadline or PATIENCE * max(self.usual_delay, 1.0)
        return self.decisions.due(now - patience)

    def implausible(self, contexts: FloatArray, y: FloatArray) -> BoolArray:
        """Return which outcomes cannot be right, given those before and the model."""
        if self.outcome_range is not None or not len(y):
            return np.zeros(len(y), dtype=bool)
        known = self.outcomes
        both = np.concatenate([known, y])
        far = implausible(both)[len(known) :]
        # Predict only if need be: a model that learns in the background must catch up first.
        if far.any() and hasattr(self.policy, "posterior"):
            mean = self.policy.posterior.predict(contexts).mean
            far = implausible(both, np.concatenate([known, mean]))[len(known) :]
        return far

    def _teach(self, record: Record, places: IntArray, y: FloatArray) -> None:
        """Let the model learn `y` of a decision's arms, in place of what it held for them."""
        is_new = np.isnan(record.taught[places])
        for mask in (is_new, ~is_new):
            at, new = places[mask], y[mask]
            if not at.size:
                continue
            if mask is is_new:
                self.policy.learn(record.contexts[at], new)
            else:
                self.policy.correct(record.contexts[at], record.taught[at], new)
            self.decisions.settle(record.id, at, Status.LEARNED, new, new)

    def _judge_again(self, decision: str, places: IntArray) -> None:
        """Quarantine first outcomes that now turn out to be implausible; learn those that do not.

        The model holds the median of the others in place of a quarantined one.
        """
        if self.outcome_range is not None or self.learned > JUDGED_AGAIN + len(places):
            return
        if not self.policy.can_correct:
            return
        self._first.extend((decision, place) for place in places.tolist())
        records = [self.decisions.record(first) for first, _ in self._first]
        y = np.array([r.outcomes[p] for r, (_, p) in zip(records, self._first, strict=True)])
        wrong = implausible(y)
        for record, (_, place), is_wrong in zip(records, self._first, wrong.tolist(), strict=True):
            at = np.array([place])
            if is_wrong and record.status[place] in KNOWN:
                stand_in = np.array([np.median(y[~wrong])])
                self.policy.correct(record.contexts[at], record.taught[at], stand_in)
                outcome = record.outcomes[at]
                self.decisions.settle(record.id, at, Status.QUARANTINED, outcome, stand_in)
            elif not is_wrong and record.status[place] == Status.QUARANTINED:
                self._teach(record, at, record.outcomes[at])

    def _checked(self, record: Record, outcomes: Mapping[ArmId, float | None]) -> dict[int, float]:
        """Return outcomes by position among the chosen arms, without those not seen."""
        if not isinstance(outcomes, Mapping):
            raise OutcomeError(
                "outcomes must be a dict {arm id: outcome}, such as series.to_dict(); "
                f"got {type(outcomes).__name__}"
            )
        checked: dict[int, float] = {}
        for arm, outcome in outcomes.items():
            place = _place(record, arm)
            value = as_outcome(arm, outcome)
            if not math.isnan(value):
                self._check_range(arm, value)
                checked[place] = value
        return checked

    @property
    def _limits(self) -> tuple[float, float]:
        """The lowest and the highest outcome that is taken."""
        low, high = self.outcome_range or (-LARGEST_OUTCOME, LARGEST_OUTCOME)
        return max(low, -LARGEST_OUTCOME), min(high, LARGEST_OUTCOME)

    def _check_range(self, arm: ArmId, outcome: Any) -> None:
        low, high = self._limits
        if not low <= outcome <= high:
            raise OutcomeError(
                f"the outcome of arm {arm!r} must be between {low:g} and {high:g}; got {outcome!r}"
            )


def as_outcome(arm: ArmId, outcome: Any) -> float:
    """Return an outcome as a float; NaN where it was not seen, infinite beyond all floats."""
    if is_missing(outcome):
        return math.nan
    if not isinstance(outcome, NUMBERS):
        raise OutcomeError(f"the outcome of arm {arm!r} must be a number; got {outcome!r}")
    try:
        return float(outcome)
    except OverflowError:  # an integer
        return math.inf if outcome > 0 else -math.inf


def _place(record: Record, arm: ArmId) -> int:
    try:
        return record.places[as_id(arm)]
    except (KeyError, InputError):
        raise FeedbackError(
            f"decision {record.id!r} did not choose arm {arm!r}; it chose "
            f"{', '.join(map(repr, record.arms[:20]))}"
        ) from None


def _refused(record: Record, place: int, new: dict[int, float]) -> FeedbackError:
    arm, outcome = record.arms[place], record.outcomes[place]
    before = {
        Status.LEARNED: f"{outcome:g} before",
        Status.QUARANTINED: f"{outcome:g} before, which is quarantined",
        Status.DEFAULTED: f"none before its deadline, and {outcome:g} was learned",
        Status.NEVER_CAME: "none before its deadline, and was given up",
        Status.CORRECTED: f"{outcome:g} before",
    }[Status(record.status[place])]
    return FeedbackError(
        f"decision {record.id!r}: arm {arm!r} had {before}; got {new[place]:g} now; give "
        "correct=True to replace it"
    )


def _latest(numbers: FloatArray, new: FloatArray) -> FloatArray:
    return np.concatenate([numbers, new])[-COMPARED_WITH:]
