"""How the published scripts differ from the paper or from us: one switch for each difference.

All are off by default. `oclok run movies --as-published` turns on those that concern the
experiment, `--quirk NAME` a single one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cholesky

from oclok.bench import Movies, Problem
from oclok.bench.experiments.base import Experiment, ProblemFactory
from oclok.bench.experiments.published.movies import PublishedMovies
from oclok.bench.experiments.specs import PolicyFactory, PolicySpec
from oclok.bench.labels import OCLOK
from oclok.errors import ExperimentError
from oclok.policies.oclok import OClokUCB
from oclok.policies.regret import Regret
from oclok.posterior import SparsePosterior
from oclok.typing import FloatArray

#: M of the scripts in all simulations.
MAX_ARMS = 150
#: The noise of the scripts' posteriors in all simulations.
NOISE_STD = 0.1
#: GPflow's default.
JITTER = 1e-6

#: The quirk that is about repeats and not about rounds or policies.
ONE_DRAW = "one-draw"

#: Where results with all quirks are kept, beside those without.
FOLDER = "as-published"

#: What each quirk is, and why it is not ours.
QUIRKS = {
    "jitter": "GPflow adds 1e-6 to the diagonal of K(U, U), which blurs what close inducing points "
    "tell apart; a pivoted factor needs no jitter.",
    ONE_DRAW: "All repeats play the same rounds with the same f and differ in noise and inducing "
    "points only; repeats that are to stand for other problems need draws of their own.",
    "max-arms": "β has M = 150 in every simulation, which a round of movies exceeds ten times "
    "over; Lemma 1 needs an M that is never exceeded.",
    "noise": "The posterior assumes a noise of 0.1 where outcomes are 0 or 1; their standard "
    "deviation is up to 0.5.",
    "shared-numbers": "Movies and users are both numbered from 0 in one graph, so that movie i and "
    "user i are one node and influence runs over several hops; in the paper they are different "
    "nodes.",
    "zero-arms": "Arms are allocated for all edges but written for a random half, so that the rest "
    "are edge (0, 0) with context 0 and mean 0; the paper has an arm for each rating.",
    "first-profiles": "A user's profile averages the ratings in the first round in which the user "
    "appears; the paper averages over all movies that the user rated.",
    "most-genres": "Contexts are divided by the largest number of genres of any movie in the data, "
    "7 for generated ratings; the paper divides by 10, as MovieLens has it.",
}

#: The quirks of each experiment that is in the scripts; movies have them all.
_CONCERNED = {
    "crowdsourcing": ("jitter", ONE_DRAW, "max-arms"),
    "codependency": ("jitter", ONE_DRAW, "max-arms"),
    "movies": tuple(QUIRKS),
}


def in_scripts(experiment: Experiment) -> dict[str, str]:
    """Return the sentences, by name, of all quirks that concern an experiment."""
    return {name: QUIRKS[name] for name in _CONCERNED.get(experiment.name, ())}


def as_published(experiment: Experiment, names: Sequence[str] = ()) -> Experiment:
    """Return an experiment with quirks turned on: all that are in the scripts, or those named."""
    known = in_scripts(experiment)
    if not known:
        raise ExperimentError(f"{experiment.name} is not in the published scripts")
    for name in names:
        if name not in known:
            there_are = ", ".join(known)
            raise ExperimentError(f"{experiment.name} has no quirk {name!r}; it has {there_are}")
    on = set(names or known)
    return replace(
        experiment,
        title=f"{experiment.title}, as published ({', '.join(n for n in known if n in on)})",
        variants={name: _variant(make, on) for name, make in experiment.variants.items()},
        # Those with a note are not in the paper.
        policies=[replace(s, make=_policy(s, on)) for s in experiment.policies if not s.note],
        # Shared numbers have an oracle of their own.
        options={name: value for name, value in experiment.options.items() if name != "oracle"},
    )


def _variant(make: ProblemFactory, on: Set[str]) -> ProblemFactory:
    if make is Movies:
        switches = ("shared-numbers", "zero-arms", "first-profiles", "most-genres")
        chosen: dict[str, Any] = {name.replace("-", "_"): name in on for name in switches}
        make = partial(PublishedMovies, **chosen)
    if ONE_DRAW not in on:
        return make
    # The table has a column for each keyword of a partial: they must not be hidden in another.
    func, keywords = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
    return partial(_first_draw, func, **keywords)


def _first_draw(
    make: ProblemFactory, *, rounds: int, seed: np.random.SeedSequence, **options: Any
) -> Problem:
    """Make the problem of the first repeat, whichever repeat the `seed` is of."""
    first = np.random.SeedSequence(seed.entropy, spawn_key=(0, *seed.spawn_key[1:]))
    return make(rounds=rounds, seed=first, **options)


def _policy(spec: PolicySpec, on: Set[str]) -> PolicyFactory:
    """Return the factory of a policy; only O'CLOK-UCB and SO'CLOK-UCB have quirks."""
    if OCLOK not in spec.label:
        return spec.make
    max_arms = MAX_ARMS if "max-arms" in on else None
    changes: dict[str, Any] = {"policy": partial(WithBeta, max_arms=max_arms)}
    if spec.label != OCLOK and "jitter" in on:
        changes["posterior"] = JitteredPosterior
    if "noise" in on:
        changes["noise_std"] = NOISE_STD
    return partial(spec.make, **changes)


class WithBeta(OClokUCB):
    """O'CLOK-UCB with an M, `max_arms`, that may be exceeded; that of each round if None."""

    def __init__(self, *arguments: Any, max_arms: int | None, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.assumed_arms = max_arms

    def beta(self, t: int, arms: int) -> float:
        """Return β_t with M as assumed."""
        return super().beta(t, self.assumed_arms or arms)

    def regret(self, level: float = 0.95) -> Regret:
        """Return NaN: solving past rounds for samples of f takes hours with `SharedNumbers`."""
        return Regret(*3 * (math.nan,), level, math.nan, self.round, 0, self.calibration())


class JitteredPosterior(SparsePosterior):
    """SO'CLOK-UCB's posterior as GPflow has it: K(U, U) + 10⁻⁶ I, no point left out."""

    def _inducing_points(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        U = X.copy()
        if self._most < len(X):
            U = X[self._rng.choice(len(X), self._most, replace=False)]
        R = cholesky(self.prior.of(U) + JITTER * np.eye(len(U)), lower=True)
        return U, np.asfortranarray(R)
