"""Corrections of learned outcomes, for policies that cannot make them on their own yet."""

from __future__ import annotations

from typing import Any

from oclok.errors import InputError
from oclok.posterior.dictionary import DictionaryPosterior
from oclok.typing import FloatArray


def correct(policy: Any, contexts: FloatArray, before: FloatArray, after: FloatArray) -> None:
    """Change outcomes learned at `contexts` from `before` to `after`."""
    if hasattr(policy, "correct"):
        policy.correct(contexts, before, after)
        return
    if not hasattr(policy, "posterior"):
        raise InputError(f"a {type(policy).__name__} cannot correct outcomes")
    X, y = policy.posterior.contexts, policy.posterior.outcomes
    for x, old, new in zip(contexts, before, after, strict=True):
        y[int(((x == X).all(axis=1) & (y == old)).argmax())] = new
    fresh = DictionaryPosterior(policy.posterior.kernel, policy.posterior.noise_std)
    fresh.update(X, y)
    policy.posterior = fresh
