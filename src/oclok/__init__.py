"""Decide sets under uncertainty: contextual combinatorial bandits with Gaussian processes.

Every round a different set of base arms is available, each with a context vector. A policy
picks a feasible subset, sees a noisy outcome for each arm it picked, and learns.

    posterior (belief)   ×   policy (optimism)   ×   oracle (choice)
"""

from __future__ import annotations

from oclok.decision import Decision
from oclok.errors import OclokError
from oclok.fitting import fit_kernel
from oclok.policies import UCB, BayesUCB, OClokUCB, Policy, ThompsonSampling

__version__ = "0.1.0"

__all__ = [
    "UCB",
    "BayesUCB",
    "Decision",
    "OClokUCB",
    "OclokError",
    "Policy",
    "ThompsonSampling",
    "__version__",
    "fit_kernel",
]
