"""What an experiment is: policies on the variants of a problem, declared and nothing more.

    run = variant × policy × horizon × repeat

Only policies that are told the horizon run once for each. The regret of any other at horizon T
is its cumulative regret in round T, as a shorter problem is a longer one, truncated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from oclok.errors import ExperimentError
from oclok.policies.base import Policy
from oclok.problems.base import Problem
from oclok.validation import as_count

#: Takes `rounds=`, `seed=` and the options of its experiment.
ProblemFactory: TypeAlias = Callable[..., Problem]
#: Takes the problem that will be played (its length is the horizon) and a seed.
PolicyFactory: TypeAlias = Callable[[Problem, np.random.SeedSequence], Policy]
#: What a person can choose about the problem: a path, the name of an oracle, or neither.
Options: TypeAlias = Mapping[str, str | None]

#: The shortest horizon at which regret is measured, where there are several.
FIRST_HORIZON = 10
#: Rounds and repeats for a look.
QUICK_ROUNDS, QUICK_REPEATS = 50, 2


@dataclass(frozen=True)
class PolicySpec:
    """A policy in an experiment.

    Attributes:
        label: its name in tables and figures.
        make: makes a fresh one.
        depends_on_horizon: whether it is told how many rounds there will be.
        note: what a reader should know of it; empty if nothing.
    """

    label: str
    make: PolicyFactory
    depends_on_horizon: bool = False
    note: str = ""

    @property
    def key(self) -> str:
        """The label as it is easy to type, and in file names: SO'CLOK-UCB 10 → soclok-ucb-10."""
        return _key(self.label)


@dataclass(frozen=True)
class Settings:
    """How an experiment is run; made, checked, by `Experiment.settings`.

    Attributes:
        rounds: T, the largest horizon.
        repeats: number of independent repeats.
        seed: where all randomness comes from.
        policies: labels of those that take part.
        options: given to the problems.
    """

    rounds: int
    repeats: int
    seed: int
    policies: tuple[str, ...]
    options: Options


@dataclass(frozen=True)
class Run:
    """One policy on one problem: the unit of work, and of what is kept."""

    variant: str
    policy: str
    horizon: int
    repeat: int

    def __str__(self) -> str:
        return f"{self.policy} {self.variant} T={self.horizon} repeat {self.repeat}".replace(
            "  ", " "
        )

    @property
    def file_name(self) -> str:
        """A name that no other run of the experiment has."""
        parts = [_key(self.policy), f"t{self.horizon}", f"r{self.repeat}"]
        return "_".join([*([_key(self.variant)] if self.variant else []), *parts]) + ".parquet"


@dataclass(frozen=True)
class Experiment:
    """Some policies on some variants of a problem.

    Attributes:
        name: what it is called on the command line.
        title: what it is called on paper.
        variants: a problem factory for each; an only one is named "".
        policies: which take part.
        rounds: T, the largest horizon.
        horizons: how many horizons there are, evenly spaced up to T.
        repeats: number of independent repeats.
        options: what can be chosen about the problem, with the value it has if nobody does.
        shares_problem: whether making a problem is so costly that all runs on it should be done
            in one place, one after another.
    """

    name: str
    title: str
    variants: Mapping[str, ProblemFactory]
    policies: Sequence[PolicySpec]
    rounds: int
    horizons: int = 1
    repeats: int = 5
    options: Options = field(default_factory=dict)
    shares_problem: bool = False

    def settings(
        self,
        *,
        rounds: int | None = None,
        repeats: int | None = None,
        seed: int = 0,
        policies: Sequence[str] = (),
        quick: bool = False,
        **options: str | None,
    ) -> Settings:
        """Return settings, the declared ones where nothing is given.

        Args:
            rounds: T.
            repeats: number of independent repeats.
            seed: where all randomness comes from.
            policies: labels or keys of those that take part; all if there are none.
            quick: few rounds and repeats, for a look.
            **options: of the problem; None stands for the declared value.
        """
        usual_rounds = min(QUICK_ROUNDS, self.rounds) if quick else self.rounds
        usual_repeats = min(QUICK_REPEATS, self.repeats) if quick else self.repeats
        chosen = {name: value for name, value in options.items() if value is not None}
        for name in chosen.keys() - self.options.keys():
            raise ExperimentError(f"{self.name} takes no --{name}; leave it out")
        return Settings(
            rounds=as_count(usual_rounds if rounds is None else rounds, "rounds"),
            repeats=as_count(usual_repeats if repeats is None else repeats, "repeats"),
            seed=as_count(seed, "seed", least=0),
            policies=self._labels(policies),
            options={**self.options, **chosen},
        )

    def runs(self, settings: Settings) -> list[Run]:
        """Return all runs, in the order of the final table."""
        return [
            Run(variant, spec.label, horizon, repeat)
            for variant in self.variants
            for spec in self.policies
            if spec.label in settings.policies
            for horizon in self.horizons_of(spec, settings)
            for repeat in range(settings.repeats)
        ]

    def horizons_of(self, spec: PolicySpec, settings: Settings) -> list[int]:
        """Return the horizons at which a policy runs, ascending."""
        rounds = settings.rounds
        if self.horizons == 1 or not spec.depends_on_horizon:
            return [rounds]
        spaced = np.linspace(min(FIRST_HORIZON, rounds), rounds, self.horizons)
        return sorted({round(horizon) for horizon in spaced.tolist()})

    def problem(self, settings: Settings, variant: str, horizon: int, repeat: int) -> Problem:
        """Return the problem of a repeat, the same one for every policy."""
        seed, _, _ = seeds(settings, repeat)
        return self.variants[variant](rounds=horizon, seed=seed, **settings.options)

    def policy(self, label: str) -> PolicySpec:
        """Return the policy with this label."""
        return next(spec for spec in self.policies if spec.label == label)

    def notes(self, settings: Settings) -> dict[str, str]:
        """Return what a reader should know of the policies that take part, by label."""
        specs = (self.policy(label) for label in settings.policies)
        return {spec.label: spec.note for spec in specs if spec.note}

    def _labels(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the labels of policies, in the order of the experiment."""
        wanted = {_key(name) for name in names}
        for name in names:
            if _key(name) not in {spec.key for spec in self.policies}:
                known = ", ".join(spec.key for spec in self.policies)
                raise ExperimentError(f"{self.name} has no policy {name!r}; it has {known}")
        return tuple(spec.label for spec in self.policies if not wanted or spec.key in wanted)


def seeds(settings: Settings, repeat: int) -> list[np.random.SeedSequence]:
    """Return the seeds of the problem, of its noise and of the policy in a repeat.

    They are the same for every policy, variant and horizon, so that a run does not depend on
    which others there are, and policies are compared on equal luck.
    """
    return np.random.SeedSequence(settings.seed, spawn_key=(repeat,)).spawn(3)


def _key(name: str) -> str:
    return re.sub(r"[^\w.=]+", "-", name.replace("'", "").strip().lower())
