"""Thompson sampling: one sample of f at the available base arms is the index."""

from __future__ import annotations

import numpy as np

from oclok.policies.base import Belief, Proposal
from oclok.policies.gp import GPPolicy
from oclok.typing import FloatArray


class ThompsonSampling(GPPolicy):
    """Play what is best for one joint sample of f at the available base arms.

    Its expected regret over problems drawn from the prior is of the same order as O'CLOK-UCB's
    (Russo and Van Roy 2014; for changing sets of arms Sandberg et al. 2023). There is no bound
    for a single run, and so no certificate.

    The arguments are those of `GPPolicy`; `seed` is that of the samples.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from oclok.oracles import TopK
        >>> policy = ThompsonSampling(RBF(1.0), 0.1, TopK(1), seed=0)
        >>> decision = policy.select([[0.0], [1.0]])
        >>> policy.update(decision, [0.3])
    """

    _is_random = True

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        prediction = self.posterior.predict(contexts)
        return Belief(
            prediction.sample(rng), prediction.mean, prediction.std, prediction=prediction
        )

    def _redraw(self, proposal: Proposal, rng: np.random.Generator) -> FloatArray:
        assert proposal.belief.prediction is not None
        return proposal.belief.prediction.sample(rng)
