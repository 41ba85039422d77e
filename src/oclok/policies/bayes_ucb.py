"""Bayes-UCB: a quantile of the posterior as index."""

from __future__ import annotations

from scipy.special import ndtri

from oclok.policies.ucb import UCBPolicy


class BayesUCB(UCBPolicy):
    """Take the 1 - 1/(t+1) quantile of the posterior of f(x) as index (Kaufmann et al. 2012).

    Much narrower than Theorem 1's width: in round 100 it adds 2.3 standard deviations, where
    O'CLOK-UCB adds 6.0 for 100 base arms. Its expected regret over problems drawn from the prior
    is bounded for quantiles that rise fast enough with t (Sandberg et al. 2023).

    The arguments are those of `UCBPolicy`.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from oclok.oracles import TopK
        >>> policy = BayesUCB(RBF(1.0), 0.1, TopK(1))
        >>> policy.observe([[0.0]], [-1.0])
        >>> policy.select([[0.1], [5.0]]).super_arm
        array([1])
    """

    def width(self, t: int, arms: int) -> float:
        """Return the standard normal quantile of 1 - 1/(t+1)."""
        return float(ndtri(1 - 1 / (t + 1)))
