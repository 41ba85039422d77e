"""TCGP-UCB: O'CLOK-UCB with group thresholds (Elahi et al. 2023)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oclok.oracles.base import Oracle
from oclok.policies.certificate import Certificate
from oclok.policies.oclok import OClokUCB
from oclok.policies.thresholds import GroupThresholds
from oclok.posterior.base import Posterior

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class TCGPUCB(GroupThresholds, OClokUCB):
    """O'CLOK-UCB for base arms in groups, each of which must reach a threshold.

    A base arm has two outcomes: one for the reward, one for its group. A group is good enough
    if the mean of the second outcome's expectation over its available base arms is at least its
    threshold. Groups that are not, even at their group indices, are ruled out for the round, and
    the oracle chooses among the arms of the others. With probability 1 - δ no group that is
    good enough is ever ruled out.

    Args:
        kernel: a scikit-learn kernel for the reward outcomes.
        noise_std: standard deviation of their noise.
        posterior: the posterior to use for them, instead of these two.
        oracle: default oracle. With groups it must take any number of base arms, as `TopK`
            does; `select` can be given a function that makes one for the arms that remain.
        delta: each of the two bands, for f and for f', holds with probability 1 - delta.
        max_arms: M, the largest number of base arms that will ever be available, if known.
        group_kernel: kernel of the group outcomes; that of the reward outcomes if left out.
        group_noise_std: the same for their noise.
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
        self.use_groups(group_kernel, group_noise_std, group_posterior, zeta)

    def certificate(self) -> Certificate:
        """Return upper bounds on the regret so far that hold with probability 1 - 2δ.

        The regret is against super arms out of groups that are good enough. It says nothing of
        how far groups that were chosen are below their thresholds.
        """
        return replace(super().certificate(), probability=max(0.0, 1 - 2 * self.delta))
