"""An experiment: policies on the variants of a problem, declared and nothing more.

    run = variant × policy × horizon × repeat

Only policies that depend on the horizon run once for each. The regret of any other at horizon T
is its cumulative regret in round T, as a shorter problem is a longer one, truncated.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from oclok import __version__
from oclok.bench import simulation
from oclok.bench.experiments.digest import digest
from oclok.bench.experiments.specs import PolicySpec, as_key, check_distinct, keywords_of, show
from oclok.bench.problems.base import Problem
from oclok.errors import ExperimentError
from oclok.validation import as_count

#: Takes `rounds=`, `seed=` and the options of its experiment.
ProblemFactory: TypeAlias = Callable[..., Problem]
#: What a person can choose about the problem: a path, the name of an oracle, or neither.
Options: TypeAlias = Mapping[str, str | None]

#: The shortest horizon at which regret is measured, where there are several.
FIRST_HORIZON = 10
#: Rounds and repeats for a look.
QUICK_ROUNDS, QUICK_REPEATS = 50, 2


@dataclass(frozen=True)
class Settings:
    """How an experiment is run, as `Experiment.settings` returns it."""

    rounds: int  # T, the largest horizon
    repeats: int
    seed: int
    policies: tuple[str, ...]  # labels of those that take part
    options: Options  # given to the problems


@dataclass(frozen=True)
class Run:
    """One policy on one problem: the unit of work and of storage.

    `identity` is a hash of all that the table of the run depends on: its settings, the parameters
    of policy and problem, the code behind them, and the version of oclok.
    """

    variant: str
    policy: str
    horizon: int
    repeat: int
    identity: str = ""

    def __str__(self) -> str:
        name = f"{self.policy} {self.variant}".strip()
        return f"{name} T={self.horizon} repeat {self.repeat}"

    @property
    def file_name(self) -> str:
        """A name that no other run has."""
        parts = [as_key(self.variant), as_key(self.policy), f"t{self.horizon}", f"r{self.repeat}"]
        return "_".join(part for part in [*parts, self.identity] if part) + ".csv.gz"


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Some policies on some variants of a problem.

    Attributes:
        name: on the command line.
        title: in reports; the name if left out.
        variants: a problem factory for each; an only one is named "". It takes `rounds=`, `seed=`
            and the `options`, as problem classes do. The keyword arguments of a
            `functools.partial` become columns of the table.
        policies: which take part; their labels must differ in letters, digits, dots or equals
            signs. The first is what others are compared with.
        rounds: T, the largest horizon.
        horizons: how many horizons there are, evenly spaced up to T.
        repeats: number of independent repeats.
        options: settings of the problem, with their default values.
        shares_problem: whether runs on a problem are done in one place, as it is costly to make.
        is_from_paper: whether the paper makes claims about it, for the report to check.
    """

    name: str
    title: str = ""
    variants: Mapping[str, ProblemFactory]
    policies: Sequence[PolicySpec]
    rounds: int
    horizons: int = 1
    repeats: int = 5
    options: Options = field(default_factory=dict)
    shares_problem: bool = False
    is_from_paper: bool = False

    def __post_init__(self) -> None:
        for name in ("rounds", "repeats", "horizons"):
            as_count(getattr(self, name), name)
        if not isinstance(self.variants, Mapping) or not self.variants:
            raise ExperimentError(
                f"{self.name}: variants must map names to problem factories, such as "
                f'{{"": Crowdsourcing}}; got {self.variants!r}'
            )
        for variant, make in self.variants.items():
            if not callable(make):
                wanted = f"variant {variant!r} must be a problem class or factory"
                raise ExperimentError(f"{self.name}: {wanted}; got {make!r}")
        if not self.policies:
            raise ExperimentError(f"{self.name}: has no policies; at least one is needed")
        for spec in self.policies:
            if not isinstance(spec, PolicySpec):
                wanted = "policies must be PolicySpec objects"
                raise ExperimentError(f"{self.name}: {wanted}; got {spec!r}")
        check_distinct(self.name, "policies", [spec.label for spec in self.policies])
        check_distinct(self.name, "variants", self.variants)

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

        `policies` are labels or keys of those that take part, all if there are none; `quick` means
        few rounds and repeats, for a look; an option of the problem that is None is as declared.
        """
        usual = self.rounds, self.repeats
        if quick:
            usual = min(QUICK_ROUNDS, self.rounds), min(QUICK_REPEATS, self.repeats)
        chosen = {name: value for name, value in options.items() if value is not None}
        for name in chosen.keys() - self.options.keys():
            raise ExperimentError(f"{self.name} takes no --{name}; leave it out")
        known = {spec.key: spec.label for spec in self.policies}
        wanted = {as_key(policy): policy for policy in policies} or known
        for key, policy in wanted.items():
            if key not in known:
                there = ", ".join(known)
                raise ExperimentError(f"{self.name} has no policy {policy!r}; it has {there}")
        return Settings(
            rounds=as_count(usual[0] if rounds is None else rounds, "rounds"),
            repeats=as_count(usual[1] if repeats is None else repeats, "repeats"),
            seed=as_count(seed, "seed", least=0),
            policies=tuple(label for key, label in known.items() if key in wanted),
            options={**self.options, **chosen},
        )

    def runs(self, settings: Settings) -> list[Run]:
        """Return all runs, in the order of the final table."""
        problems, policies = self.digests(settings)
        runner = digest(__version__, inspect.getsource(simulation), settings.seed)
        return [
            Run(
                *(variant, spec.label, horizon, repeat),
                digest(problem, variant, policies[spec.label], spec.label, horizon, repeat, runner),
            )
            for variant, problem in problems.items()
            for spec in self.policies
            if spec.label in policies
            for horizon in self.horizons_of(spec, settings)
            for repeat in range(settings.repeats)
        ]

    def digests(self, settings: Settings) -> tuple[dict[str, str], dict[str, str]]:
        """Return hashes of the parameters and code of all variants, and of all policies."""
        files = [_stamp(Path(value)) for value in settings.options.values() if value]
        options = dict(settings.options)
        problems = {name: digest(make, options, files) for name, make in self.variants.items()}
        return problems, {name: digest(self.policy(name).make) for name in settings.policies}

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
        problem = self.variants[variant](rounds=horizon, seed=seed, **settings.options)
        if not isinstance(problem, Problem):
            raise ExperimentError(
                f"{self.name}: the factory of variant {variant!r} must return an "
                f"oclok.bench.Problem; got {problem!r}"
            )
        return problem

    def policy(self, label: str) -> PolicySpec:
        """Return the policy with this label."""
        return next(spec for spec in self.policies if spec.label == label)

    def parameters(self, settings: Settings, variant: str, policy: str) -> dict[str, Any]:
        """Return the declared parameters of a policy and its problem, by column of the table."""
        problem = {**keywords_of(self.variants[variant]), **settings.options}
        groups = {"policy": self.policy(policy).parameters, "problem": problem}
        return {f"{of}_{n}": show(v) for of, group in groups.items() for n, v in group.items()}

    def notes(self, settings: Settings) -> dict[str, str]:
        """Return the notes on the policies that take part, by label."""
        specs = (self.policy(label) for label in settings.policies)
        return {spec.label: spec.note for spec in specs if spec.note}


def seeds(settings: Settings, repeat: int) -> list[np.random.SeedSequence]:
    """Return the seeds of the problem, of its noise and of the policy in a repeat.

    They are the same for every policy, variant and horizon, so that a run does not depend on
    which others there are, and policies are compared on equal luck.
    """
    return np.random.SeedSequence(settings.seed, spawn_key=(repeat,)).spawn(3)


def _stamp(path: Path) -> list[tuple[str, int, int]]:
    """Return names, sizes and times of the files at `path`; none if it is no path."""
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stats = [(str(file), file.stat()) for file in files if file.is_file()]
    except OSError:
        return []
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
