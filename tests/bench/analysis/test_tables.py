from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oclok.bench import Crowdsourcing
from oclok.bench.analysis import complete, summarise
from oclok.bench.simulation import simulate
from oclok.errors import InputError
from oclok.policies import Random


@pytest.fixture(scope="module")
def tables():
    return [
        simulate(Random(seed=s), Crowdsourcing(rounds=4, seed=s), seed=s).assign(policy=label)
        for label in ("B", "A")
        for s in range(3)
    ]


def test_a_table_of_simulate_is_one_policy_with_one_repeat(tables):
    table = complete(tables[0].drop(columns="policy"))
    assert set(table["policy"]) == {"Random"}
    assert set(table["repeat"]) == {0}
    assert set(table["horizon"]) == {4}
    assert set(table["data"]) == {tables[0].attrs["data"]}


def test_tables_put_together_are_repeats_in_their_order(tables):
    whole = complete(pd.concat(tables))
    assert whole.groupby("policy")["repeat"].nunique().tolist() == [3, 3]
    second = whole[(whole["policy"] == "B") & (whole["repeat"] == 1)]
    np.testing.assert_array_equal(second["regret"], tables[1]["regret"])
    rows = summarise(pd.concat(tables))
    assert rows.index.get_level_values("policy").tolist() == ["B", "A"]
    sums = [table["regret"].sum() for table in tables[:3]]
    assert rows.loc[("", "B"), "regret"] == pytest.approx(np.mean(sums))


def test_two_policies_with_one_label_are_an_error_and_never_added_up(tables):
    numbered = [table.assign(repeat=i % 3, policy="same") for i, table in enumerate(tables)]
    with pytest.raises(InputError, match=r"12 rounds are in the table more than once.*'same'"):
        complete(pd.concat(numbered))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (7, "expected a table of rounds"),
        (pd.DataFrame({"round": [1]}), "no column expected_reward"),
        (
            pd.DataFrame(columns=["round", "expected_reward", "best_expected_reward"]),
            "has no rows",
        ),
    ],
)
def test_what_is_no_table_of_rounds_is_an_error(wrong, message):
    with pytest.raises(InputError, match=message):
        complete(wrong)


def test_the_table_that_is_given_is_not_changed(tables):
    before = tables[0].copy()
    complete(tables[0])
    pd.testing.assert_frame_equal(tables[0], before)
