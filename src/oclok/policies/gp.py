"""What policies with a Gaussian process share: a posterior, however it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oclok.decision import Decision
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief, Policy
from oclok.policies.calibration import Calibration, judge
from oclok.posterior.base import Posterior
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.posterior.observations import Rows
from oclok.typing import FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: More outcomes than this at once are not judged one by one: the cost grows with their cube.
JUDGED_AT_ONCE = 1_000


class GPPolicy(Policy):
    """A policy that believes in a posterior.

    Args:
        kernel: a scikit-learn kernel, with
        noise_std: standard deviation of the outcomes' noise; or, instead of both,
        posterior: the posterior to use. By default a `DictionaryPosterior`.
        oracle: default oracle.
        seed: seed of the policy's own randomness.
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        noise_std: float | None = None,
        oracle: Oracle | None = None,
        *,
        posterior: Posterior | None = None,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        super().__init__(oracle, seed)
        if posterior is None:
            if kernel is None or noise_std is None:
                raise InputError("give kernel= and noise_std=, or posterior=")
            posterior = DictionaryPosterior(kernel, noise_std)
        elif kernel is not None or noise_std is not None:
            raise InputError("give kernel= and noise_std=, or posterior=, not both")
        elif not isinstance(posterior, Posterior):
            raise InputError(f"posterior must be an oclok.posterior.Posterior; got {posterior!r}")
        self.posterior = posterior
        self._dimension = posterior.dimension
        self._residuals = Rows()

    def calibration(self, levels: tuple[float, ...] = (0.5, 0.8, 0.95)) -> Calibration:
        """Return how well the posterior foresaw the outcomes so far, without any ground truth.

        Outcomes are judged as they arrive, each against the posterior just before it, in
        `update` and in calls of `observe` with at most 1,000 of them.
        """
        return judge(self._residuals.array, levels)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        residuals = np.empty(0)
        if len(outcomes) <= JUDGED_AT_ONCE:
            residuals = self.posterior.innovations(contexts, outcomes)
        self.posterior.update(contexts, outcomes)
        self._residuals.extend(residuals)

    def _decided(self, decision: Decision, contexts: FloatArray, belief: Belief) -> None:
        self.posterior.expect(contexts)
