"""The baseline: the rule that decides for the control group and backs the guard.

    "chosen"                                given by the caller, as `chosen=`, with each decision
    "uniform"                               at random, all feasible sets alike (see below)
    {"sort": "price"}                       the first that fit, cheapest first
    {"sort": "price", "descending": true}   … most expensive first
    {"score": "rating"}                     the feasible set with the largest sum of a column

Every rule ends in the oracle of the decision, so that its sets are feasible. "uniform" draws
priorities for the arms: sets of `TopK` are then uniform, those of other oracles nearly so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from oclok.agent.arms import Arms, as_numbers
from oclok.decision import Propensities
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray

#: Draws that estimate propensities where sets are random and cannot be counted.
DRAWS = 200
#: What a rule may look like, with the types of its values.
FORMS = ("chosen", "uniform", {"sort": str}, {"sort": str, "descending": bool}, {"score": str})


class Baseline(Persistent):
    """A rule that chooses among the feasible sets of a decision.

    Args:
        rule: one of the forms above.

    Examples:
        >>> Baseline({"sort": "price"})
        Baseline({'sort': 'price'})
    """

    def __init__(self, rule: str | Mapping[str, Any]) -> None:
        self.rule = rule if isinstance(rule, str) else dict(rule)
        form = rule if isinstance(rule, str) else {key: type(v) for key, v in rule.items()}
        if form not in FORMS:
            raise InputError(
                'baseline must be "chosen", "uniform", {"sort": column}, {"sort": column, '
                f'"descending": true}} or {{"score": column}}; got {rule!r}'
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the arms that the rule reads; they need not be features."""
        values = () if isinstance(self.rule, str) else self.rule.values()
        return tuple(value for value in values if isinstance(value, str))

    @property
    def is_random(self) -> bool:
        """Whether the rule chooses at random."""
        return self.rule == "uniform"

    def choose(self, oracle: Oracle, arms: Arms, rng: np.random.Generator) -> IntArray:
        """Return the positions of the set that the rule chooses."""
        return np.asarray(oracle(rng.random(len(arms)) if self.is_random else self._index(arms)))

    def propensities(
        self, oracle: Oracle, arms: int, chosen: IntArray, played: IntArray, seed: int
    ) -> Propensities:
        """Return how likely the rule is to choose each of M = `arms` arms, and the set `played`.

        `chosen` is the rule's set; `seed` is that of the draws where sets cannot be counted.
        """
        if not self.is_random:
            certain = Propensities.certain(arms, chosen)
            return certain._replace(super_arm=float(np.array_equal(chosen, played)))
        exact = oracle.uniform_propensities(arms)
        if exact is not None:
            return exact
        rng = np.random.default_rng(seed)
        drawn = [oracle(rng.random(arms)) for _ in range(DRAWS)]
        return Propensities.counted(arms, [chosen, *drawn], played)

    def _index(self, arms: Arms) -> FloatArray:
        """Return the index (M,) for the oracle; missing values come last."""
        assert isinstance(self.rule, dict)
        x = as_numbers(arms.column(*self.columns))
        if "score" in self.rule:
            return np.where(np.isnan(x), np.nanmin(x, initial=math.inf, where=~np.isnan(x)), x)
        key = np.where(np.isnan(x), math.inf, -x if self.rule.get("descending") else x)
        rank = np.argsort(np.argsort(key, kind="stable"))
        return np.asarray(1.0 - rank / len(x))

    def __repr__(self) -> str:
        return f"Baseline({self.rule!r})"
