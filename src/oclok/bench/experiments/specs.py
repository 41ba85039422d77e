"""Policies as experiments declare them: a label, how to make one, and sweeps over parameters."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from oclok.bench.problems.base import Problem
from oclok.errors import ExperimentError
from oclok.policies.base import Policy

#: Takes the problem that will be played (its length is the horizon) and a seed.
PolicyFactory: TypeAlias = Callable[[Problem, np.random.SeedSequence], Policy]


@dataclass(frozen=True)
class PolicySpec:
    """A policy in an experiment.

    Attributes:
        label: its name in tables and figures.
        make: a policy class, or a function of the problem and a seed that returns a fresh policy.
            The keyword arguments of a `functools.partial` become columns of the table.
        depends_on_horizon: whether it needs the number of rounds; known of a class.
        note: for readers of the report.
    """

    label: str
    make: PolicyFactory
    depends_on_horizon: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.make, type) and issubclass(self.make, Policy):
            object.__setattr__(self, "depends_on_horizon", _takes(self.make, "horizon"))
            object.__setattr__(self, "make", partial(make_policy, self.make))
        if not _can_be_called_with(self.make, "problem", "seed"):
            raise ExperimentError(
                f"policy {self.label!r}: make must be a policy class or a function of "
                f"(problem, seed); got {self.make!r}"
            )

    @property
    def key(self) -> str:
        """The label as it is easy to type, and in file names: SO'CLOK-UCB 10 → soclok-ucb-10."""
        return as_key(self.label)

    @property
    def parameters(self) -> dict[str, object]:
        """The keyword arguments that were given to `make` in advance."""
        return keywords_of(self.make)

    def policy(self, problem: Problem, seed: np.random.SeedSequence) -> Policy:
        """Return a fresh policy for `problem`, even if `make` returns the same object each time."""
        policy = self.make(problem, seed)
        if not isinstance(policy, Policy):
            raise ExperimentError(
                f"policy {self.label!r}: make must return an oclok.policies.Policy; got {policy!r}"
            )
        return copy.deepcopy(policy)


def sweep(
    cls: type[Policy], /, *, label: str | None = None, note: str = "", **parameters: Any
) -> list[PolicySpec]:
    """Return a policy for each combination of parameters; a list stands for several values.

    Args:
        cls: the policy class.
        label: how labels begin; with the name of the class if left out. The values of the
            parameters that vary follow.
        note: for readers of the report.
        **parameters: of `cls`. The seed, and the horizon and dimension of policies that need
            them, are those of the run unless they are given here.

    Examples:
        >>> from oclok.policies import OClokUCB
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> specs = sweep(OClokUCB, kernel=RBF(0.5), noise_std=0.1, delta=[0.01, 0.1])
        >>> [spec.label for spec in specs]
        ['OClokUCB delta=0.01', 'OClokUCB delta=0.1']
    """
    for name, value in parameters.items():
        if not _takes(cls, name):
            raise ExperimentError(f"{cls.__name__} has no parameter {name!r}")
        if isinstance(value, list) and not value:
            raise ExperimentError(f"{cls.__name__}: the list of {name} is empty")
    varied = {name: values for name, values in parameters.items() if isinstance(values, list)}
    depends_on_horizon = _takes(cls, "horizon") and "horizon" not in parameters
    specs = []
    for combination in product(*varied.values()):
        chosen = dict(zip(varied, combination, strict=True))
        words = [f"{name}={show(value)}" for name, value in chosen.items()]
        text = " ".join([cls.__name__ if label is None else label, *words])
        make = partial(make_policy, cls, **{**parameters, **chosen})
        specs.append(PolicySpec(text, make, depends_on_horizon, note))
    return specs


def make_policy(
    cls: type[Policy], problem: Problem, seed: np.random.SeedSequence, **parameters: Any
) -> Policy:
    """Make a policy, filling in `seed`, `horizon` and `dimension` where its `__init__` takes them.

    Parameters are copied, so that no two policies share a posterior.
    """
    arguments = copy.deepcopy(parameters)
    if _takes(cls, "seed"):
        arguments.setdefault("seed", seed)
    if _takes(cls, "horizon"):
        arguments.setdefault("horizon", len(problem))
    if _takes(cls, "dimension") and "dimension" not in arguments:
        arguments["dimension"] = problem.dimension  # which not every problem has
    return cls(**arguments)


def show(value: object) -> bool | int | float | str | None:
    """Return a parameter as it stands in labels and tables: a plain value, or a text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return show(value.item())
    return value.__name__ if isinstance(value, type) else " ".join(repr(value).split())


def keywords_of(make: object) -> dict[str, object]:
    """Return the keyword arguments that a factory was given in advance."""
    return dict(make.keywords) if isinstance(make, partial) else {}


def as_key(name: str) -> str:
    """Return a label in small letters, digits, dots, equals signs and dashes."""
    return re.sub(r"[^\w.=]+", "-", name.replace("'", "").lower()).strip("-")


def check_distinct(name: str, what: str, labels: Iterable[str]) -> None:
    """Raise unless all `labels` have keys of their own."""
    first: dict[str, str] = {}
    for label in labels:
        if as_key(label) in first:
            raise ExperimentError(
                f"{name}: {what} must have labels that differ in more than case and punctuation; "
                f"got {first[as_key(label)]!r} and {label!r}"
            )
        first[as_key(label)] = label


def _takes(cls: type, name: str) -> bool:
    """Return whether `cls` has a parameter of this name, or passes it on to a base class."""
    for base in cls.__mro__:
        parameters = inspect.signature(base).parameters
        passes_on = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        if name in parameters or not passes_on:
            return name in parameters
    return False


def _can_be_called_with(make: Any, *arguments: object) -> bool:
    try:
        inspect.signature(make).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # some built-in functions have no signature
        return callable(make)
    return True
