"""Variances given outcomes that will be seen, but have not been yet.

A Gaussian posterior's variances do not depend on the outcomes, only on where they are seen. So
arms that are chosen, or wait for feedback, can count before they are observed.

    X    available contexts (M, D)        C    their joint covariance, (M, M)
    J    chosen ones among them           σ    standard deviation of the noise

    C  ←  C - C_:J (C_JJ + σ²I)⁻¹ C_J:            I  ←  I + ½ log det(I + σ⁻²C_JJ)
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dtrsm

from oclok.posterior.base import Posterior
from oclok.posterior.linalg import add_to_diagonal, factor, gram, std_of
from oclok.posterior.prediction import Prediction
from oclok.typing import FloatArray, IntArray


class Conditioned:
    """The joint covariance of the available arms, given arms chosen and contexts `pending` (P, D).

    `information` are the nats that the outcomes conditioned on, and not seen, will bring.
    """

    def __init__(
        self, posterior: Posterior, available: Prediction, pending: FloatArray | None = None
    ) -> None:
        self.noise_std = posterior.noise_std
        self.information = 0.0
        if pending is None:
            self._covariance = available.covariance()
            return
        count = len(available.contexts)
        together = np.vstack([available.contexts, pending])
        self._covariance = posterior.screen(together).covariance()
        self.condition(np.arange(count, count + len(pending)))
        self._covariance = self._covariance[:count, :count]

    @property
    def std(self) -> FloatArray:
        """Standard deviations of f at the available arms, shape (M,)."""
        return std_of(self._covariance.diagonal())

    def condition(self, positions: IntArray) -> None:
        """Count the arms at `positions` as seen."""
        if len(positions) == 0:
            return
        rows = self._covariance[positions]
        S = rows[:, positions]
        add_to_diagonal(S, self.noise_std**2)
        L = factor(S, self.noise_std**2)
        self._covariance = self._covariance - gram(dtrsm(1.0, L, rows, lower=1))
        self.information += float(np.log(L.diagonal()).sum())
        self.information -= len(positions) * math.log(self.noise_std)
