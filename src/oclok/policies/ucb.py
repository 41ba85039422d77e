"""UCB: mean plus a number of standard deviations as index; the base of all rules of that form.

    μ, σ     mean and standard deviation of f        w_t    width in round t
    C        joint covariance of the available arms given those that were chosen, but not seen

    index = μ + w_t σ

A new rule of this form is a class with a `width`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np

from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief
from oclok.policies.gp import GPPolicy, GPSettings
from oclok.policies.rehearsal import Rehearsal
from oclok.posterior.base import Posterior
from oclok.posterior.conditioning import Conditioned
from oclok.posterior.prediction import Prediction
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_nonnegative

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: exp of this is wide enough for any choice, and still finite after a few multiplications.
LARGEST_INFORMATION = 200.0
#: Arms sharpened per look, as a multiple of those selected, and the number of looks.
RUNNERS_UP, LOOKS = 2, 3


class UCBSettings(GPSettings, total=False):
    """Keyword arguments of `UCBPolicy`, for classes that pass them on."""

    condition_on_chosen: bool | Literal["guaranteed"]


class UCBPolicy(GPPolicy):
    """A policy whose index is mean + width · std, with a width that may depend on the round.

    Args:
        condition_on_chosen: shrink variances by outcomes that are still to come: those of pending
            decisions (the latest 512 arms) and, with oracles that choose step by step (`TopK`,
            `Partition`, `Knapsack`, greedy `Coverage`), of arms taken earlier in the same super
            arm. Super arms become more diverse. The band is then too narrow for f, by up to a
            factor of exp(I), where I is the information (nats) in these outcomes (GP-BUCB,
            Desautels et al. 2014). "guaranteed" widens it by that factor; True does not, and often
            earns more.

    The other arguments are those of `GPPolicy`.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_std: float | None = None,
        oracle: Oracle | None = None,
        *,
        condition_on_chosen: bool | Literal["guaranteed"] = False,
        **settings: Unpack[GPSettings],
    ) -> None:
        super().__init__(kernel, noise_std, oracle, **settings)
        if not isinstance(condition_on_chosen, bool) and str(condition_on_chosen) != "guaranteed":
            raise InputError(
                'condition_on_chosen must be True, False or "guaranteed"; '
                f"got {condition_on_chosen!r}"
            )
        self.condition_on_chosen = condition_on_chosen

    def width(self, t: int, arms: int) -> float:
        """Return how many standard deviations the index adds in round `t` with `arms` arms."""
        raise NotImplementedError

    def index(self, contexts: ArrayLike) -> FloatArray:
        """Return the indices, shape (M,), that `select` would use now. Changes nothing."""
        prediction = self.posterior.predict(self._as_contexts(contexts))
        t = self.round + 1
        belief = self._upper_bound(prediction, t, len(prediction.contexts))
        if not self.condition_on_chosen:
            return belief.index
        waiting = self._latest_of(self._waiting())
        return self._given(Conditioned(self.posterior, prediction, waiting), belief, t).index

    @property
    def uses_pending(self) -> bool:  # type: ignore[override]
        """Whether `propose` takes `pending` into account."""
        return bool(self.condition_on_chosen)

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        return self._upper_bound(self.posterior.screen(contexts), t, len(contexts))

    def _upper_bound(self, f: Prediction, t: int, arms: int) -> Belief:
        width = self.width(t, arms)
        error = f.mean_error + width * f.std_error if width else f.mean_error
        return Belief(self._capped(f.mean + width * f.std, f.mean), f.mean, f.std, error, f)

    def _capped(self, index: FloatArray, mean: FloatArray) -> FloatArray:
        """Return indices (M,) that no outcome can exceed, where that is known."""
        return index

    def _choose(
        self, t: int, belief: Belief, oracle: Oracle, pending: FloatArray | None
    ) -> tuple[IntArray, Belief, bool | None]:
        if self.condition_on_chosen and belief.prediction is not None:
            given = Conditioned(self.posterior, belief.prediction, pending)
            belief = self._given(given, belief, t)
            if oracle.is_sequential:
                return self._choose_stepwise(t, belief, given, oracle)
            return self._solve(oracle, belief.index), belief, belief.is_exact
        super_arm = self._solve(oracle, belief.index)
        largest = belief.error[belief.error.argmax()]  # quicker than `max`
        if largest == math.inf:
            return (*self._sharpen(t, belief, oracle, super_arm), None)
        is_exact = largest == 0.0 or oracle.is_stable(belief.index, super_arm, belief.error)
        return super_arm, belief, bool(is_exact)

    def _sharpen(
        self, t: int, belief: Belief, oracle: Oracle, super_arm: IntArray
    ) -> tuple[IntArray, Belief]:
        """Sharpen the selected arms and re-solve until every selected arm is sharp.

        Sharpening lowers most indices; the others are lowered by the smallest drop seen, and after
        the last look by the lower quartile of the drops.
        """
        first = belief.index
        is_sharp = np.zeros(len(first), dtype=bool)
        for look in range(1, LOOKS + 1):
            if belief.prediction is None or is_sharp[super_arm].all():
                break
            is_sharp[super_arm] = True
            if look < LOOKS:
                dull = np.flatnonzero(~is_sharp)
                best = np.argsort(-first[dull], kind="stable")
                is_sharp[dull[best[: (RUNNERS_UP - 1) * len(super_arm)]]] = True
            sharp = belief.prediction.sharpen(np.flatnonzero(is_sharp))
            if sharp is belief.prediction:
                break
            belief = self._upper_bound(sharp, t, len(first))
            drops = np.sort((first - belief.index)[is_sharp])
            drop = float(drops[len(drops) // 4 if look >= LOOKS - 1 else 0])
            belief = replace(belief, index=belief.index - np.where(is_sharp, 0.0, max(drop, 0.0)))
            if look < LOOKS:
                super_arm = self._solve(oracle, belief.index)
        return super_arm, belief

    def _choose_stepwise(
        self, t: int, belief: Belief, given: Conditioned, oracle: Oracle
    ) -> tuple[IntArray, Belief, bool | None]:
        """Choose one step at a time; the belief has each chosen arm's index when it was taken."""
        oracle(belief.index)  # refuses what the oracle refuses
        chosen = np.empty(0, dtype=np.intp)
        index, index_when_taken = belief.index, belief.index.copy()
        while (new := oracle.choose_next(index, chosen)).size:
            index_when_taken[new] = index[new]
            chosen = np.append(chosen, new)
            given.condition(new)
            index = self._given(given, belief, t).index
            index[chosen] = index_when_taken[chosen]
        error = belief.error if oracle.steps_keep_alpha else np.full(len(index), np.inf)
        taken = Belief(index_when_taken, belief.mean, belief.std, error, belief.prediction)
        return np.sort(chosen), taken, taken.is_exact

    def _given(self, given: Conditioned, belief: Belief, t: int) -> Belief:
        """Return `belief` with the index that conditioned variances give.

        Its error stays that of the index without conditions, which is what the certificate needs:
        in the model at hand, the guaranteed index is never below that one. It does not bound the
        distance from the exact posterior's conditioned index, so nothing is proven exact by it.
        """
        width = self.width(t, len(belief.index))
        if self.condition_on_chosen == "guaranteed":
            width *= math.exp(min(given.information, LARGEST_INFORMATION))
        mean = np.asarray(belief.mean)
        index = self._capped(mean + width * given.std, mean)
        return Belief(index, mean, belief.std, belief.error, belief.prediction)


class UCB(UCBPolicy):
    """Take mean + width · std as index.

    Args:
        width: how many standard deviations to add; 0 is greedy. Left out, it is learned from
            rounds rehearsed under the posterior (`rehearsal.py`), and no index exceeds the largest
            outcome that is possible.
        outcome_range: lowest and highest outcome that are possible, for a width that is learned;
            without it, the largest outcome counts as the ceiling once it was met five times.

    The other arguments are those of `UCBPolicy`.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from oclok.oracles import TopK
        >>> policy = UCB(RBF(1.0), 0.1, TopK(1))
        >>> policy.observe([[0.0]], [-1.0])
        >>> policy.select([[0.1], [5.0]]).super_arm
        array([1])
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_std: float | None = None,
        oracle: Oracle | None = None,
        width: float | None = None,
        outcome_range: tuple[float, float] | None = None,
        **settings: Unpack[UCBSettings],
    ) -> None:
        super().__init__(kernel, noise_std, oracle, **settings)
        self._width = 0.0 if width is None else as_nonnegative(width, "width")
        self._rehearsal = Rehearsal(outcome_range) if width is None else None

    def width(self, t: int, arms: int) -> float:
        """Return the width in round `t`: as given, or as learned so far."""
        return self._width if self._rehearsal is None else self._rehearsal.width_in(t)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        super()._learn(contexts, outcomes)
        if self._rehearsal is not None:
            self._rehearsal.work(self.posterior, self._kept)

    def _follow(self, posterior: Posterior) -> None:
        if posterior is not self.posterior and self._rehearsal is not None:
            self._rehearsal.restart(self._kept.rounds)
        super()._follow(posterior)

    def _capped(self, index: FloatArray, mean: FloatArray) -> FloatArray:
        if self._rehearsal is None:
            return index
        return self._rehearsal.capped(index, mean, self.posterior)
