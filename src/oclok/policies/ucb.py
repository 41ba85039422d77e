"""UCB: mean plus a number of standard deviations as index; the base of all rules of that form.

    μ, σ     mean and standard deviation of f        w_t    width in round t
    C        joint covariance of the available arms given those that were chosen, but not seen

    index = μ + w_t σ

A new rule of this form is a class with a `width`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np

from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Played
from oclok.policies.gp import GPPolicy, GPSettings
from oclok.posterior.conditioning import Conditioned
from oclok.posterior.prediction import Prediction
from oclok.typing import ArrayLike, FloatArray, IntArray, Kernel
from oclok.validation import as_nonnegative, as_range

#: exp of this is wide enough for any choice, and still finite after a few multiplications.
LARGEST_INFORMATION = 200.0
#: Arms sharpened per look, as a multiple of those selected, and the number of looks.
RUNNERS_UP, LOOKS = 2, 3
#: Without a width given: that of all arms, and for how many outcomes.
EARLY_WIDTH, EARLY = 1.0, 200
#: Width of the arms that explore, and how many of five or more do; later √(EARLY / N) of that.
EXPLORING_WIDTH, EXPLORERS = 2.0, 2.0
#: Multiples of it, less their integer parts, are spread evenly: they say in which rounds one more
#: arm explores where a fraction of one is due.
GOLDEN_RATIO = 0.5 * (math.sqrt(5) - 1)
#: A model that doubts itself is tested in rounds that are powers of this, from the second on.
TEST = 3
#: What breaks ties: the weight of the mean in capped indices, or of draws before any outcome.
TIE = 1e-6
#: Indices are capped this share of the range below its end: a model that has seen an arm succeed
#: still expects a little less than the largest outcome, and unknown arms must not pass it by that.
NEAR = 0.05


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

    Without a width, some arms of a round explore: those with the largest mean + 2 std on offer. Of
    five arms, two do until there are 200 outcomes, when the others have width 1. From then on the
    others are chosen by their means, and 2 √(200 / N) of five explore, N being the number of
    outcomes; a fraction is one more arm in as many of the rounds. Indices are capped at the largest
    outcome that is possible, less 5% of the range; after 200 outcomes an arm that explores does not
    promise more than the largest of the latest 200 either. Ties go by the mean.

    As long as decisions wait for the very first outcome, which arms are chosen changes from round
    to round: nothing tells them apart, and later each of them will have told something.

    A model that learned from arms it chose can be wrong about all others. In rounds 9, 27, 81, …,
    while the posterior `is_doubtful`, the one arm that explores is the most uncertain on offer.

    Args:
        width: how many standard deviations to add; 0 is greedy.
        outcome_range: lowest and highest outcome that are possible, for a width that is not given;
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
        self._width = None if width is None else as_nonnegative(width, "width")
        self._range = as_range(outcome_range)
        self._chosen = 5  # arms of the latest super arm

    def width(self, t: int, arms: int) -> float:
        """Return the width in round `t`; where none is given, that of arms that do not explore."""
        if self._width is not None:
            return self._width
        return EARLY_WIDTH if self._is_early or self.condition_on_chosen else 0.0

    def _upper_bound(self, f: Prediction, t: int, arms: int) -> Belief:
        belief = super()._upper_bound(f, t, arms)
        if self._width is not None or self.condition_on_chosen:
            return belief
        if self.awaited and not len(self.posterior):
            draw = TIE * np.random.default_rng(t).random(arms)
            return replace(belief, index=belief.index + draw)
        explorers = min(self._explorers(t), arms)
        if not explorers:
            return belief
        best = math.inf if self._is_early else float(self.posterior.outcomes[-EARLY:].max())
        wide = _capped(f.mean + EXPLORING_WIDTH * f.std, f.mean, min(best, self._ceiling))
        wide = rank = np.maximum(wide, belief.index)
        if _is_test(t) and self.posterior.is_doubtful(f):
            wide, rank, explorers = np.full(arms, wide.max()), f.std, 1
        explore = np.argsort(-rank, kind="stable")[:explorers]
        index, error = belief.index.copy(), f.mean_error + EXPLORING_WIDTH * f.std_error
        index[explore] = wide[explore]
        if error.any():  # the exact posterior may let others explore
            could = rank + error >= np.sort(rank - error)[-explorers]
            if np.count_nonzero(could) > explorers:
                error = error + np.where(could, wide - belief.index, 0.0)
        return replace(belief, index=index, error=error)

    def _explorers(self, t: int) -> int:
        """Return how many arms explore in round `t`."""
        due = EXPLORERS / 5 * min(self._chosen, 5)
        if not self._is_early:
            due *= math.sqrt(EARLY / len(self.posterior))
        return int(due) + (t * GOLDEN_RATIO % 1 < due % 1)

    @property
    def _is_early(self) -> bool:
        return len(self.posterior) < EARLY

    @property
    def _ceiling(self) -> float:
        """What indices are capped at: almost the highest outcome possible, where that is known."""
        low, high = self.posterior.range if self._range is None else self._range
        return high - NEAR * (high - low) if math.isfinite(high - low) else high

    def _capped(self, index: FloatArray, mean: FloatArray) -> FloatArray:
        return index if self._width is not None else _capped(index, mean, self._ceiling)

    def _record(self, played: Played) -> None:
        super()._record(played)
        self._chosen = len(played.super_arm)


def _is_test(t: int) -> bool:
    return t > TEST and TEST ** round(math.log(t, TEST)) == t


def _capped(index: FloatArray, mean: FloatArray, cap: float) -> FloatArray:
    """Return indices (M,) of at most `cap`; ties there go by the mean."""
    return index if cap == math.inf else np.minimum(index, cap) + TIE * (mean - cap)
