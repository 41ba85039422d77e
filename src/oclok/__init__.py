"""Decide sets under uncertainty: contextual combinatorial bandits with Gaussian processes.

Every round a different set of base arms is available, each with a context vector. A policy
picks a feasible subset, sees a noisy outcome for each arm it picked, and learns.

    posterior (belief)   ×   policy (optimism)   ×   oracle (choice)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oclok.agent import Agent
    from oclok.decision import Decision
    from oclok.errors import OclokError
    from oclok.policies import UCB, BayesUCB, OClokUCB, Policy, ThompsonSampling
    from oclok.posterior.fitting import fit_kernel
    from oclok.service.client import AsyncClient, Client

__version__ = "0.1.0"

__all__ = [
    "UCB",
    "Agent",
    "AsyncClient",
    "BayesUCB",
    "Client",
    "Decision",
    "OClokUCB",
    "OclokError",
    "Policy",
    "ThompsonSampling",
    "__version__",
    "fit_kernel",
]

#: Where names live that are not policies. All are imported on first use: SciPy takes a while.
_HOMES = {
    "Agent": "agent",
    "AsyncClient": "service.client",
    "Client": "service.client",
    "Decision": "decision",
    "OclokError": "errors",
    "fit_kernel": "posterior.fitting",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'oclok' has no attribute {name!r}")
    return getattr(import_module(f"oclok.{_HOMES.get(name, 'policies')}"), name)
