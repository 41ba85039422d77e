"""TCGP-UCB: O'CLOK-UCB for super arms out of groups that must be good enough (Elahi et al. 2023).

    f, f'     mean of the reward outcome and of the group outcome of a base arm
    μ', σ'    mean and standard deviation of f'          √β_t    width of O'CLOK-UCB in round t
    ζ         how the optimism is shared out between reward and groups
    γ_g       threshold of group g, whose group reward is the mean of f' over its available arms

    index          μ  + (1-ζ)⁻¹ √β_t σ         goes to the oracle
    group index    μ' +   ζ⁻¹   √β_t σ'        decides which groups can still reach γ_g

Groups whose index is below their threshold are ruled out for the round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from oclok.decision import Decision
from oclok.errors import InfeasibleError, InputError, OutcomeError
from oclok.oracles.base import Oracle, as_oracle
from oclok.policies.certificate import Certificate
from oclok.policies.gp import as_posterior
from oclok.policies.oclok import OClokUCB
from oclok.posterior.base import Posterior
from oclok.posterior.prediction import Prediction
from oclok.typing import ArrayLike, FloatArray, IntArray, Kernel
from oclok.validation import as_nonnegative, as_numbers, as_outcomes, as_vector


class TCGPUCB(OClokUCB):
    """O'CLOK-UCB for base arms in groups, each of which must reach a threshold.

    A base arm has two outcomes: one for the reward, one for its group. A group is good enough
    if the mean of the second outcome's expectation over its available base arms is at least its
    threshold. The oracle chooses among the arms of groups that can be, by their group indices: with
    probability 1 - δ no group that is good enough is ever ruled out.

    Args:
        kernel, noise_std, posterior: of the reward outcomes, as for `GPPolicy`.
        oracle: default oracle; with groups, one that can exclude base arms.
        delta: each of the two bands, for f and for f', holds with probability 1 - delta.
        max_arms: as for `OClokUCB`.
        group_kernel, group_noise_std: of the group outcomes; those of the rewards if left out.
        group_posterior: the posterior to use for them, instead of these two.
        zeta: ζ in (0, 1). A small one makes it slow to rule groups out, a large one makes it
            explore more for the reward. 0 only without groups: then it is O'CLOK-UCB.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from oclok.oracles import TopK
        >>> policy = TCGPUCB(RBF(1.0), 0.1, TopK(1))
        >>> policy.observe([[0.0], [9.0]], [[1.0, -90.0], [0.5, 9.0]])
        >>> decision = policy.select([[0.0], [9.0]], groups=["a", "b"], threshold=0.0)
        >>> decision.super_arm
        array([1])
        >>> policy.update(decision, [[0.6, 8.0]])
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_std: float | None = None,
        oracle: Oracle | None = None,
        delta: float = 0.05,
        max_arms: int | None = None,
        *,
        posterior: Posterior | None = None,
        group_kernel: Kernel | None = None,
        group_noise_std: float | None = None,
        group_posterior: Posterior | None = None,
        zeta: float = 0.5,
    ) -> None:
        super().__init__(kernel, noise_std, oracle, delta, max_arms, posterior=posterior)
        self.zeta = as_nonnegative(zeta, "zeta")
        if self.zeta >= 1:
            raise InputError(f"zeta must be below 1; got {zeta!r}")
        rewards = self.posterior
        if group_posterior is None:
            group_kernel = rewards.kernel if group_kernel is None else group_kernel
            group_noise_std = rewards.noise_std if group_noise_std is None else group_noise_std
        groups = as_posterior(group_kernel, group_noise_std, group_posterior, prefix="group_")
        if groups is rewards:
            raise InputError("posterior and group_posterior must be two; got the same one twice")
        if len({rewards.dimension, groups.dimension} - {None}) > 1:
            raise InputError(
                f"posterior and group_posterior must be of one dimension; got {rewards.dimension} "
                f"and {groups.dimension}"
            )
        self.group_posterior = groups
        self._dimension = self._dimension or groups.dimension
        self._grouped: list[int] = []  # rounds with groups that were pending at the last select

    def certificate(self) -> Certificate:
        """Return upper bounds on the regret so far that hold with probability 1 - 2δ.

        The regret is against super arms out of groups that are good enough. It says nothing of
        how far groups that were chosen are below their thresholds.
        """
        return replace(super().certificate(), probability=max(0.0, 1 - 2 * self.delta))

    def width(self, t: int, arms: int) -> float:
        """Return w_t / (1-ζ), how many σ the index adds in round `t`."""
        return super().width(t, arms) / (1 - self.zeta)

    def group_index(self, contexts: ArrayLike) -> FloatArray:
        """Return the group indices, shape (M,), that `select` would use now. Changes nothing."""
        X = self._as_contexts(contexts)
        return self._group_bound(self.group_posterior.predict(X))[0]

    def select(
        self,
        contexts: ArrayLike,
        oracle: Oracle | None = None,
        *,
        groups: ArrayLike | None = None,
        threshold: float | Mapping[Any, float] | None = None,
    ) -> Decision:
        """Choose a super arm among base arms with `contexts`, shape (M, D). Counts t up.

        If no group can be good enough, it raises an `InfeasibleError`, and the round does not
        count: lower the threshold, or play nothing.

        Args:
            contexts: one row per base arm.
            oracle: feasible super arms of this round; the policy's own if left out.
            groups: label of the group of each base arm, integers or strings, shape (M,). Left
                out, all base arms remain.
            threshold: γ, what each group must reach, or a dict with one for each label.
        """
        if groups is None:
            if threshold is not None:
                raise InputError("threshold needs groups: give the group of each base arm")
            return super().select(contexts, oracle)
        X = self._as_contexts(contexts)
        prediction = self.group_posterior.predict(X)
        ruled_out, is_certain = self._ruled_out(prediction, groups, threshold)
        among = as_oracle(oracle, self.oracle)
        if ruled_out.size:
            among = among.given(exclude=ruled_out)
        proposal = self.propose(X, among, self._waiting())
        if not is_certain:
            no_bound = np.full(len(X), np.inf)
            proposal = replace(
                proposal,
                decision=replace(proposal.decision, is_exact=False),
                belief=replace(proposal.belief, error=no_bound),
            )
        self.commit(proposal)
        self._pending.add(proposal.decision)
        self.group_posterior.offer(prediction)
        self._grouped = [t for t in (*self._grouped, self.round) if t in self._pending]
        return proposal.decision

    def update(self, decision: Decision, outcomes: ArrayLike) -> None:
        """Learn the `outcomes`, shape (K, 2), of a decision's base arms, in their order.

        Column 0 has reward outcomes, column 1 group outcomes; NaN in both where an arm's were
        not seen, and another call may bring them. Reward outcomes alone, shape (K,), will do
        for a decision that was made without groups.
        """
        count = self._pending.missing(decision, self.round).size
        array = as_numbers(outcomes, "outcomes", OutcomeError)
        if array.ndim == 1 and decision.round not in self._grouped:
            super().update(decision, array)
            return
        pairs = as_pairs(array, count, allow_nan=True)
        _, seen = self._pending.match(decision, pairs[:, 0], self.round)
        with self._groups_given(decision.contexts[seen], pairs[seen, 1]):
            super().update(decision, pairs[:, 0])

    def observe(self, contexts: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn from data that the policy did not choose: contexts (N, D), outcomes (N, 2).

        Reward outcomes alone, shape (N,), say nothing of groups.
        """
        array = as_numbers(outcomes, "outcomes", OutcomeError)
        if array.ndim == 1:
            super().observe(contexts, array)
            return
        X = self._as_contexts(contexts)
        pairs = as_pairs(array, len(X))
        with self._groups_given(X, pairs[:, 1]):
            super().observe(X, pairs[:, 0])

    def _ruled_out(
        self, f: Prediction, groups: ArrayLike, threshold: float | Mapping[Any, float] | None
    ) -> tuple[IntArray, bool]:
        """Return the base arms of groups that cannot be good enough, and whether that is proven."""
        labels, group = as_groups(groups, len(f.contexts))
        thresholds = as_thresholds(threshold, labels)
        sizes = np.bincount(group)
        index, error = self._group_bound(f)
        margin = np.bincount(group, index) / sizes - thresholds
        if not (margin >= 0).any():
            best = int(np.argmax(margin))
            raise InfeasibleError(
                f"no group can reach its threshold: group {labels[best]!r} comes closest, its "
                f"group index is {margin[best] + thresholds[best]:.4g} and its threshold "
                f"{thresholds[best]:.4g}"
            )
        is_certain = (np.abs(margin) > np.bincount(group, error) / sizes).all()
        return np.flatnonzero((margin < 0)[group]), bool(is_certain)

    def _group_bound(self, f: Prediction) -> tuple[FloatArray, FloatArray]:
        """Return the group index and how far it can be from exact, each of shape (M,)."""
        if self.zeta == 0:
            raise InputError("zeta must be above 0 where there are groups: 1/zeta scales √β σ'")
        width = super().width(self.round + 1, len(f.contexts)) / self.zeta
        return f.mean + width * f.std, f.mean_error + width * f.std_error

    @contextmanager
    def _groups_given(self, contexts: FloatArray, outcomes: FloatArray) -> Iterator[None]:
        """Learn group outcomes, and take them back if the rewards cannot be learned."""
        if len(outcomes):
            self.group_posterior.update(contexts, outcomes)
        try:
            yield
        except BaseException:
            self.group_posterior.forget_last(len(outcomes))
            raise


def as_groups(groups: ArrayLike, arms: int) -> tuple[list[Any], IntArray]:
    """Return the labels, and which of them each base arm has, shape (M,)."""
    wanted = f"groups must have shape ({arms},), one label per base arm, integers or strings"
    try:
        array = np.asarray(groups)
    except ValueError:
        raise InputError(f"{wanted}; got ragged lists") from None
    if array.shape != (arms,) or array.dtype.kind not in "biuU":
        raise InputError(f"{wanted}; got shape {array.shape}, dtype {array.dtype}")
    labels, group = np.unique(array, return_inverse=True)
    return labels.tolist(), group


def as_thresholds(threshold: float | Mapping[Any, float] | None, labels: list[Any]) -> FloatArray:
    """Return the threshold of each label."""
    if threshold is None:
        raise InputError("groups need a threshold: a number, or a dict with one for each label")
    if not isinstance(threshold, Mapping):
        return np.repeat(as_vector([threshold], "threshold", 1), len(labels))
    missing = [label for label in labels if label not in threshold]
    if missing:
        raise InputError(f"threshold must name every group; group {missing[0]!r} is missing")
    return as_vector([threshold[label] for label in labels], "threshold", len(labels))


def as_pairs(outcomes: FloatArray, count: int, *, allow_nan: bool = False) -> FloatArray:
    """Return `outcomes` as a float array of shape (count, 2), NaN in both columns or none."""
    if outcomes.shape != (count, 2):
        raise OutcomeError(
            f"outcomes must have shape ({count}, 2), a reward outcome and a group outcome per "
            f"base arm; got shape {outcomes.shape}"
        )
    pairs = as_outcomes(outcomes.ravel(), 2 * count, allow_nan=allow_nan).reshape(count, 2)
    half = np.flatnonzero(np.isnan(pairs).sum(axis=1) == 1)
    if half.size:
        raise OutcomeError(
            "outcomes must be NaN in both columns or in none; "
            f"row {half[0]} is {pairs[half[0]].tolist()}"
        )
    return pairs
