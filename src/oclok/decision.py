"""What a policy chose in one round, and what it believed then."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from oclok.errors import InputError
from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_contexts, as_count, as_positions, as_vector


class Propensities(NamedTuple):
    """How likely the base arms of a round, and the super arm played, were to be chosen."""

    arms: FloatArray  # of each base arm; (M,)
    super_arm: float  # of the super arm as a whole
    draws: int = 0  # how many draws they are estimated from; 0 where they are exact

    @classmethod
    def certain(cls, arms: int, super_arm: IntArray) -> Propensities:
        """Return those of a super arm, of M = `arms` base arms, that is chosen without chance."""
        p = np.zeros(arms)
        p[super_arm] = 1.0
        return cls(p, 1.0)

    @classmethod
    def counted(cls, arms: int, sets: list[IntArray], played: IntArray) -> Propensities:
        """Return the frequencies of M = `arms` base arms, and of `played`, among drawn `sets`."""
        p, hits = np.zeros(arms), 0
        for drawn in sets:
            p[drawn] += 1
            hits += np.array_equal(drawn, played)
        return cls(p / len(sets), hits / len(sets), len(sets))

    def mixed(self, other: Propensities, share: float) -> Propensities:
        """Return those of choosing by `other` with probability `share`, by this one otherwise."""
        return Propensities(
            (1 - share) * self.arms + share * other.arms,
            (1 - share) * self.super_arm + share * other.super_arm,
            max(self.draws, other.draws),
        )


@dataclass(frozen=True, eq=False)
class Decision(Persistent):
    """The super arm of one round. Frozen: its arrays cannot be written to.

    Attributes:
        round: t, counted from 1.
        super_arm: positions, ascending, into the contexts given to `select`; shape (K,).
        contexts: contexts of the chosen base arms; shape (K, D).
        index: their indices; shape (K,).
        mean: their posterior means; shape (K,), or None where the policy has none.
        std: their posterior standard deviations; the same.
        is_exact: whether the exact posterior provably chooses this super arm; None where the
            posterior, or a policy without one, can prove nothing.

    Examples:
        >>> decision = Decision(1, [2], [[0.5, 0.1]], [1.7])
        >>> Decision.from_json(decision.to_json()) == decision
        True
    """

    round: int
    super_arm: IntArray
    contexts: FloatArray
    index: FloatArray
    mean: FloatArray | None = None
    std: FloatArray | None = None
    is_exact: bool | None = None

    def __post_init__(self) -> None:
        """Check what was given, lists as well as arrays, and keep copies of it."""
        positions = as_positions(self.super_arm, "super_arm")
        if not np.array_equal(positions, self.super_arm):
            raise InputError(f"super_arm must be ascending; got {self.super_arm!r}")
        count = positions.size
        contexts = np.empty((0, 0)) if count == 0 else as_contexts(self.contexts)
        if len(contexts) != count:
            raise InputError(f"{count} chosen base arms but {len(contexts)} rows of contexts")
        given = {"index": self.index, "mean": self.mean, "std": self.std}
        self._restore(
            {
                "round": as_count(self.round, "round"),
                "super_arm": positions,
                "contexts": contexts.copy(),
                "is_exact": None if self.is_exact is None else bool(self.is_exact),
                **{k: v if v is None else as_vector(v, k, count).copy() for k, v in given.items()},
            }
        )

    @classmethod
    def trusted(cls, **state: Any) -> Decision:
        """Make a decision of fresh, checked arrays, without looking at them again."""
        decision = cls.__new__(cls)
        decision._restore(state)
        return decision

    @cached_property
    def id(self) -> str:
        """A short text that names this decision: its round and a digest of its content."""
        digest = hashlib.blake2b(repr(self.is_exact).encode(), digest_size=8)
        for value in self._state().values():
            if isinstance(value, np.ndarray):
                digest.update(value.tobytes())
        return f"{self.round}-{digest.hexdigest()}"

    def to_json(self) -> str:
        """Return the decision as JSON text; floats survive the way there and back exactly."""
        arrays = {k: v.tolist() for k, v in self._state().items() if isinstance(v, np.ndarray)}
        return json.dumps({"id": self.id, **self._state(), **arrays})

    @classmethod
    def from_json(cls, text: str | bytes) -> Decision:
        """Return the decision that `to_json` wrote."""
        try:
            fields = json.loads(text)
            name = fields.pop("id")
            decision = cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as reason:
            raise InputError(f"not a decision written by to_json: {reason}") from None
        if decision.id != name:
            raise InputError(f"the decision {name!r} was altered: its content gives {decision.id}")
        return decision

    def __len__(self) -> int:
        return int(self.super_arm.size)

    def __deepcopy__(self, memo: dict[int, Any]) -> Decision:
        return self  # it cannot change

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Decision):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.id)

    def _state(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _restore(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)
