from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from oclok.bench import Table
from oclok.bench.simulation import simulate
from oclok.errors import DataError, InputError
from oclok.policies import Random

COLUMNS = {"round": "day", "outcome": "sold", "k": 2}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = np.repeat(["mon", "tue", "wed"], [4, 3, 5])
    table = pd.DataFrame(
        {"day": days, "price": rng.integers(1, 9, 12), "is_new": rng.random(12) < 0.5}
    )
    return table.assign(sold=rng.random(12), size=rng.random(12).astype(np.float32))


def test_rounds_are_the_rows_of_the_table_in_its_order():
    table = frame()
    rounds = list(Table(table, **COLUMNS))
    for current, (_, rows) in zip(rounds, table.groupby("day", sort=False), strict=True):
        expected = rows[["price", "is_new", "size"]].to_numpy(dtype=float)
        np.testing.assert_array_equal(current.contexts, expected)
        np.testing.assert_array_equal(current.means, rows["sold"])


def test_rows_of_a_round_need_not_be_together():
    table = frame()
    mixed = table.iloc[[0, 4, 7, 1, 5, 8, 2, 6, 9, 3, 10, 11]]
    for one, other in zip(Table(table, **COLUMNS), Table(mixed, **COLUMNS), strict=True):
        np.testing.assert_array_equal(one.contexts, other.contexts)
        np.testing.assert_array_equal(one.means, other.means)


def test_outcomes_are_those_of_the_table_unless_noise_is_asked_for():
    first = next(iter(Table(frame(), **COLUMNS)))
    played = first.play([0, 2], np.random.default_rng(0))
    np.testing.assert_array_equal(played, frame()["sold"].to_numpy()[[0, 2]])
    noisy = next(iter(Table(frame(), **COLUMNS, noise_std=0.5)))
    draws = [noisy.play([0], np.random.default_rng(seed))[0] for seed in range(2000)]
    assert np.mean(draws) == pytest.approx(frame()["sold"][0], abs=0.04)
    assert np.std(draws) == pytest.approx(0.5, rel=0.06)


def test_a_policy_plays_it_and_its_regret_is_that_of_brute_force():
    problem = Table(frame(), **COLUMNS)
    table = simulate(Random(seed=1), problem, seed=0)
    best = frame().groupby("day", sort=False)["sold"].apply(lambda s: s.nlargest(2).sum())
    np.testing.assert_allclose(table["best_expected_reward"], best)
    np.testing.assert_allclose(table["reward"], table["expected_reward"])


def test_a_seed_permutes_the_rounds_and_drops_none():
    means = [current.means.tolist() for current in Table(frame(), **COLUMNS)]
    orders = {
        tuple(means.index(current.means.tolist()) for current in Table(frame(), **COLUMNS, seed=s))
        for s in range(60)
    }
    assert len(orders) == 6
    assert all(sorted(order) == [0, 1, 2] for order in orders)


def test_named_features_come_in_the_order_in_which_they_are_named():
    problem = Table(frame(), **COLUMNS, features=["size", "price"])
    np.testing.assert_array_equal(
        next(iter(problem)).contexts, frame()[["size", "price"]].to_numpy(dtype=float)[:4]
    )
    assert problem.dimension == 2


def test_scaled_features_fill_the_unit_cube_and_a_constant_one_is_zero():
    problem = Table(frame().assign(constant=7), **COLUMNS)
    contexts = np.vstack([current.contexts for current in problem.scaled()])
    np.testing.assert_array_equal(contexts.min(axis=0), 0)
    np.testing.assert_array_equal(contexts.max(axis=0), [1, 1, 1, 0])
    raw = np.vstack([current.contexts for current in problem])
    assert raw.max() > 1
    assert np.corrcoef(raw[:, 0], contexts[:, 0])[0, 1] == pytest.approx(1)


@pytest.mark.parametrize("name", ["log.csv", "log.csv.gz", "log.parquet"])
def test_a_file_is_as_good_as_its_frame(tmp_path, name):
    path = tmp_path / name
    if name.endswith("parquet"):
        frame().to_parquet(path)
    else:
        frame().to_csv(path, index=False)
    problem = Table.from_file(path, **COLUMNS)
    assert problem.data_name == name
    for one, other in zip(problem, Table(frame(), **COLUMNS), strict=True):
        np.testing.assert_allclose(one.contexts, other.contexts, rtol=1e-7)
        np.testing.assert_array_equal(one.means, other.means)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": "profit"}, "no column 'profit'; its columns are 'day', 'price'"),
        ({"features": ["price", "colour"]}, "no column 'colour'"),
        ({"features": []}, "no feature columns"),
        ({"features": ["price", "sold"]}, "'sold' cannot be a feature"),
        ({"features": "price"}, "list of column names; got the string 'price'"),
        ({"k": 0}, "k must be an integer"),
        ({"k": 4}, "1 of 3 rounds have fewer, the first is day = 'tue' with 3"),
        ({"noise_std": -1.0}, "noise_std"),
        ({"rounds": 4}, "rounds must be at most 3"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    with pytest.raises((DataError, InputError), match=message):
        Table(frame(), **{**COLUMNS, **change})


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (
            "price",
            np.nan,
            "column 'price' must be finite; 1 values are not, the first is nan in row 5",
        ),
        ("sold", np.inf, "column 'sold' must be finite"),
        ("day", None, "column 'day' says which round .* row 5 is missing"),
    ],
)
def test_missing_values_are_named_and_not_repaired(column, value, message):
    table = frame()
    table[column] = table[column].astype(object if column == "day" else float)
    table.loc[5, column] = value
    with pytest.raises(DataError, match=message):
        Table(table, **COLUMNS)


@pytest.mark.parametrize("kind", ["str", "category", "datetime64[ns]"])
def test_a_column_that_is_not_numeric_is_named_with_what_to_do(kind):
    values = "2024-01-01" if "date" in kind else "red"
    table = frame().assign(colour=pd.Series([values] * 12).astype(kind))
    with pytest.raises(DataError, match=r"column 'colour' must be numeric.*one-hot.*Agent"):
        Table(table, **COLUMNS)


def test_nullable_columns_are_numbers_too():
    table = frame().astype({"price": "Int64", "is_new": "boolean", "size": "Float64"})
    for one, other in zip(Table(table, **COLUMNS), Table(frame(), **COLUMNS), strict=True):
        np.testing.assert_array_equal(one.contexts, other.contexts)
    table.loc[3, "price"] = pd.NA
    with pytest.raises(DataError, match="'price' must be finite"):
        Table(table, **COLUMNS)


def test_a_frame_without_rows_a_doubled_column_and_no_frame_are_refused():
    with pytest.raises(DataError, match="no rows"):
        Table(frame()[:0], **COLUMNS)
    doubled = pd.concat([frame(), frame()[["price"]]], axis=1)
    with pytest.raises(DataError, match="2 columns 'price'"):
        Table(doubled, **COLUMNS)
    with pytest.raises(InputError, match="DataFrame; got list"):
        Table([1, 2], **COLUMNS)


def test_a_file_that_is_missing_broken_or_of_another_kind_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        Table.from_file(tmp_path / "none.csv", **COLUMNS)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="cannot be read"):
        Table.from_file(tmp_path / "broken.parquet", **COLUMNS)
    with pytest.raises(DataError, match=r"\.csv, \.csv\.gz or \.parquet"):
        Table.from_file(tmp_path / "log.xlsx", **COLUMNS)


def test_the_frame_is_neither_changed_nor_watched():
    table = frame()
    problem = Table(table, **COLUMNS)
    list(problem)
    pd.testing.assert_frame_equal(table, frame())
    table["sold"] = 0.0
    table["price"] += 1
    np.testing.assert_array_equal(next(iter(problem)).means, frame()["sold"][:4])


def test_problems_do_not_load_pandas():
    code = "import sys, oclok.bench.problems; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
