"""Outcomes by decision and arm: learned exactly once, corrected, defaulted or quarantined.

What became of a chosen arm's outcome is its `Status`:

    WAITING ──learn──────▶ LEARNED ◀──accept── QUARANTINED
       │                                            ▲
       ├──learn, implausible────────────────────────┘
       ├──deadline, default──▶ DEFAULTED
       └──deadline───────────▶ NEVER_CAME
    any but WAITING ──correct──▶ CORRECTED

Each change is made in the model first and noted here right after, so that an error in between
leaves both as they were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from oclok.agent.arms import ArmId, as_id
from oclok.agent.decisions import KNOWN, Decisions, Record, Status
from oclok.agent.plausibility import implausible
from oclok.errors import FeedbackError, InputError, OclokError, OutcomeError
from oclok.persistence import Persistent
from oclok.policies import Policy
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import LARGEST_OUTCOME, as_outcomes, as_positive, as_range

#: Settled decisions whose outcomes can still be repeated and corrected.
REMEMBERED = 100_000
#: Latest outcomes that new ones are compared with.
COMPARED_WITH = 1_000
#: So many first outcomes are judged again whenever others come: a wrong one among the very first
#: is seen as such only later.
JUDGED_AGAIN = 50
#: Late = PATIENCE × the 95th percentile of delays, once so many are known.
PATIENCE, LEAST_DELAYS = 10.0, 50


@dataclass(frozen=True)
class Learned:
    """What became of the outcomes given to `learn`: each arm id is in one of the lists.

    Attributes:
        learned: new outcomes.
        repeated: outcomes that were known already, and ignored.
        corrected: outcomes that took the place of others.
        quarantined: outcomes that cannot be right and were kept out of learning.
    """

    learned: list[ArmId] = field(default_factory=list)
    repeated: list[ArmId] = field(default_factory=list)
    corrected: list[ArmId] = field(default_factory=list)
    quarantined: list[ArmId] = field(default_factory=list)


class Feedback(Persistent):
    """Teaches a policy the outcomes of decisions that are known by their ids.

    Args:
        policy: what is taught.
        outcome_range, deadline, default_outcome: as for `Agent`.
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
        self.deadline = None if deadline is None else as_positive(deadline, "deadline")
        self.default_outcome = self._as_default(default_outcome)
        self.decisions = Decisions(REMEMBERED)
        self.outcomes = Recent(COMPARED_WITH)
        self.delays = Recent(COMPARED_WITH)
        self.observed = 0
        self._first: list[tuple[str, int]] = []

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
        arms = record.arms
        is_good = is_first & ~is_bad
        self._teach(record, places[is_good | is_other], y[is_good | is_other])
        if is_other.any():
            self.decisions.settle(
                decision, places[is_other], Status.CORRECTED, y[is_other], y[is_other]
            )
        if is_bad.any():
            self.decisions.settle(decision, places[is_bad], Status.QUARANTINED, y[is_bad], np.nan)
        self.outcomes.extend(y[is_first])
        self.delays.extend(np.full(np.count_nonzero(is_first), now - record.decided))
        self._judge_again(decision, places[is_first])

        def names(mask: BoolArray) -> list[ArmId]:
            return [arms[place] for place in places[mask].tolist()]

        return Learned(names(is_good), names(is_same), names(is_other), names(is_bad))

    def refusals(
        self, decision: str, outcomes: Mapping[ArmId, float | None], correct: bool
    ) -> dict[ArmId, str]:
        """Return which outcomes `learn` would refuse, and why; change nothing."""
        record = self.decisions.record(decision)
        places = {arm: place for place, arm in enumerate(record.arms)}
        refused = {}
        for arm, outcome in outcomes.items():
            try:
                for place, y in self._checked(record, {arm: outcome}, places).items():
                    is_known = record.status[place] != Status.WAITING
                    if is_known and record.outcomes[place] != y and not correct:
                        raise _refused(record, place, {place: y})
            except OclokError as reason:
                refused[arm] = str(reason)
        return refused

    def accept(self, decision: str, arm: ArmId) -> None:
        """Learn an outcome that was quarantined."""
        record = self.decisions.record(decision)
        place = _place(record, arm, {each: place for place, each in enumerate(record.arms)})
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
        self.outcomes.extend(y)
        self.observed += len(y)

    def expire(self, now: float) -> None:
        """Stop waiting for outcomes whose deadline has passed."""
        due = [] if self.deadline is None else self.decisions.due(now - self.deadline)
        if not due:
            return
        records = [self.decisions.record(decision) for decision in due]
        waiting = [np.flatnonzero(record.status == Status.WAITING) for record in records]
        default = self.default_outcome
        if default is None:
            for record, places in zip(records, waiting, strict=True):
                self.decisions.settle(record.id, places, Status.NEVER_CAME, np.nan, np.nan)
            return
        X = np.vstack([r.contexts[places] for r, places in zip(records, waiting, strict=True)])
        y = np.full(len(X), default)
        self.policy.learn(X, y)
        self.outcomes.extend(y)
        for record, places in zip(records, waiting, strict=True):
            self.decisions.settle(record.id, places, Status.DEFAULTED, default, default)

    @property
    def usual_delay(self) -> float:
        """The time, in seconds, that 95% of the latest outcomes took; infinite if few came."""
        delays = self.delays.values
        return math.inf if len(delays) < LEAST_DELAYS else float(np.quantile(delays, 0.95))

    def overdue(self, now: float) -> list[str]:
        """Return open decisions past the deadline or, without one, unusually old; oldest first."""
        patience = self.deadline or PATIENCE * max(self.usual_delay, 1.0)
        return self.decisions.due(now - patience)

    def implausible(self, contexts: FloatArray, y: FloatArray) -> BoolArray:
        """Return which outcomes cannot be right, given those before and the model."""
        if self.outcome_range is not None or not len(y):
            return np.zeros(len(y), dtype=bool)
        known = self.outcomes.values
        both = np.concatenate([known, y])
        far = implausible(both)[len(known) :]
        # The model is asked only if need be: one that learns in the background must catch up.
        if far.any() and hasattr(self.policy, "posterior"):
            mean = self.policy.posterior.predict(contexts).mean
            far = implausible(both, np.concatenate([known, mean]))[len(known) :]
        return far

    def _teach(self, record: Record, places: IntArray, y: FloatArray) -> None:
        """Let the model learn `y` of a decision's arms; what it held for them before is undone."""
        is_new = np.isnan(record.taught[places])
        fresh, held = places[is_new], places[~is_new]
        if fresh.size:
            self.policy.learn(record.contexts[fresh], y[is_new])
            self.decisions.settle(record.id, fresh, Status.LEARNED, y[is_new], y[is_new])
        if held.size:
            before = record.taught[held]
            self.policy.correct(record.contexts[held], before, y[~is_new])
            self.decisions.settle(record.id, held, Status.LEARNED, y[~is_new], y[~is_new])

    def _judge_again(self, decision: str, places: IntArray) -> None:
        """Quarantine what was learned at first and cannot be right, as is seen now.

        The model holds the median of the others in its place. Conversely, what was quarantined
        at first and is plausible now is learned.
        """
        if self.outcome_range is not None or self.outcomes.count > JUDGED_AGAIN + len(places):
            return
        self._first.extend((decision, place) for place in places.tolist())
        records = [self.decisions.record(first) for first, _ in self._first]
        y = np.array([r.outcomes[p] for r, (_, p) in zip(records, self._first, strict=True)])
        wrong = implausible(y)
        for record, (_, place), is_wrong in zip(records, self._first, wrong.tolist(), strict=True):
            at = np.array([place])
            if is_wrong and record.status[place] in KNOWN:
                told, stand_in = record.outcomes[at], np.array([np.median(y[~wrong])])
                self.policy.correct(record.contexts[at], record.taught[at], stand_in)
                self.decisions.settle(record.id, at, Status.QUARANTINED, told, stand_in)
            elif not is_wrong and record.status[place] == Status.QUARANTINED:
                self._teach(record, at, record.outcomes[at])

    def _checked(
        self,
        record: Record,
        outcomes: Mapping[ArmId, float | None],
        places: Mapping[ArmId, int] | None = None,
    ) -> dict[int, float]:
        """Return outcomes by position among the chosen arms; or say what is wrong with them."""
        if not isinstance(outcomes, Mapping):
            raise OutcomeError(f"outcomes must be a dict {{arm id: outcome}}; got {outcomes!r}")
        checked: dict[int, float] = {}
        if places is None:
            places = {arm: place for place, arm in enumerate(record.arms)}
        for arm, outcome in outcomes.items():
            place = _place(record, arm, places)
            if outcome is None:
                continue
            if not isinstance(outcome, Real | np.bool_):
                raise OutcomeError(f"the outcome of arm {arm!r} must be a number; got {outcome!r}")
            try:
                value = float(outcome)
            except OverflowError:  # an integer beyond all floats
                value = math.inf if outcome > 0 else -math.inf
            if not math.isnan(value):
                self._check_range(arm, value)
                checked[place] = value
        return checked

    def _check_range(self, arm: ArmId, outcome: Any) -> None:
        low, high = self.outcome_range or (-LARGEST_OUTCOME, LARGEST_OUTCOME)
        low, high = max(low, -LARGEST_OUTCOME), min(high, LARGEST_OUTCOME)
        if not low <= outcome <= high:
            raise OutcomeError(
                f"the outcome of arm {arm!r} must be between {low:g} and {high:g}; got {outcome!r}"
            )

    def _as_default(self, default: float | None) -> float | None:
        if default is None:
            return None
        if self.deadline is None:
            raise InputError("default_outcome is learned after a deadline; give deadline=, too")
        value = float(as_outcomes([default], 1)[0])
        low, high = self.outcome_range or (-math.inf, math.inf)
        if not low <= value <= high:
            raise InputError(f"default_outcome must be in the outcome_range; got {default!r}")
        return value


def _place(record: Record, arm: ArmId, places: Mapping[ArmId, int]) -> int:
    try:
        return places[as_id(arm)]
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


class Recent(Persistent):
    """The latest `size` numbers of a stream, in order.

    Examples:
        >>> recent = Recent(3)
        >>> recent.extend([1.0, 2.0, 3.0, 4.0])
        >>> recent.values
        array([2., 3., 4.])
        >>> recent.count
        4
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        self._buffer = np.empty(0)

    @property
    def values(self) -> FloatArray:
        """The numbers, oldest first; shape (at most size,)."""
        return self._buffer[max(0, len(self._buffer) - self.size) :]

    def extend(self, numbers: ArrayLike) -> None:
        """Add `numbers`, latest last."""
        new = np.asarray(numbers, dtype=np.float64)
        self._buffer = np.concatenate([self.values, new])[-self.size :]
        self.count += len(new)

    def _state(self) -> dict[str, Any]:
        return {"size": self.size, "count": self.count, "values": self.values.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        self.size, self.count, self._buffer = state["size"], state["count"], state["values"]
