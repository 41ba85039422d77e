from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import oclok.bench.report
from oclok.bench.experiments import EXPERIMENTS, Run, play
from oclok.bench.experiments.published import ONE_DRAW, QUIRKS, as_published, in_scripts
from oclok.bench.report.claims import CLAIMS, THEORY
from oclok.bench.report.switches import ALL, tried

SWITCHES = Path(oclok.bench.report.__file__).with_name("switches.csv")
RUNS = pd.read_csv(SWITCHES, keep_default_na=False)


def claim(experiment, opening):
    (found,) = [each for each in CLAIMS[experiment] if each.text.startswith(opening)]
    return found


def pivot(experiment, switches, column):
    """Return a table of runs: draws × (variant, policy)."""
    runs = RUNS[(RUNS["experiment"] == experiment) & (RUNS["switches"] == switches)]
    runs = runs.assign(regret=runs["best_expected_reward"] - runs["expected_reward"])
    return runs.pivot(index="repeat", columns=["variant", "policy"], values=column)


def interval(values):
    return stats.ttest_1samp(values, 0.0).confidence_interval(0.95)


def words_with(text, switches):
    """Return what `tried` says of one way to set the switches."""
    name = "all of the scripts together" if switches == ALL else switches
    (part,) = [part for part in text.split("; ") if f" {name} (" in part]
    return part.removeprefix("Switches that were tried: ").split(" with ")[0]


@pytest.mark.parametrize("switches", ["all", "all but most-genres", "shared-numbers", "noise"])
def test_the_words_on_ratings_are_those_of_a_t_test(switches):
    rewards = pivot("movies", switches, "expected_reward")[""]
    low, high = interval(rewards["SO'CLOK-UCB 4"] / rewards["ACC-UCB"] - 1)
    expected = "holds" if low > 0.08 else "does not hold" if high < 0.08 else "cannot be told"
    text = tried(claim("movies", "With 4 inducing points, it outperforms"), "movies")
    assert words_with(text, switches) == expected


@pytest.mark.parametrize("switches", ["all", "jitter", "max-arms"])
def test_the_words_on_lengthscales_are_those_of_t_tests(switches):
    regret = pivot("codependency", switches, "regret")
    less = {
        policy: interval(regret["l=0.5"][policy] - regret["l=1"][policy])
        for policy in regret["l=1"]
    }
    signs = [1 if low > 0 else -1 if high < 0 else 0 for low, high in less.values()]
    wanted = [1 if policy == "O'CLOK-UCB" else -1 for policy in less]
    is_other = any(a == -b for a, b in zip(signs, wanted, strict=True))
    expected = "does not hold" if is_other else "holds" if signs == wanted else "cannot be told"
    text = tried(claim("codependency", "The same by cumulative regret"), "codependency")
    assert words_with(text, switches) == expected


def test_what_the_runs_do_not_have_is_not_told():
    assert tried(THEORY[0], "movies") == ""
    assert tried(claim("crowdsourcing", "O'CLOK-UCB takes"), "crowdsourcing") == ""
    assert tried(claim("movies", "With 2"), "channels") == ""


def test_runs_are_with_switches_that_the_experiment_has():
    for experiment, runs in RUNS.groupby("experiment"):
        known = {quirk.name for quirk in QUIRKS if experiment in quirk.experiments}
        alone = {name for name in runs["switches"] if not name.startswith(ALL)}
        assert alone <= known
        assert alone >= set(in_scripts(EXPERIMENTS[experiment])) - {ONE_DRAW}
        assert ALL in set(runs["switches"])


@pytest.mark.parametrize("switches", ["jitter", "half-width"])
def test_runs_are_those_that_the_code_makes_today(switches):
    experiment = as_published(EXPERIMENTS["crowdsourcing"], [switches])
    run = Run("", "SO'CLOK-UCB 10", 250, 0)
    table = play(experiment, experiment.settings(), run)
    kept = pivot("crowdsourcing", switches, "expected_reward")
    np.testing.assert_allclose(
        table["expected_reward"].sum(), kept.loc[0, ("", run.policy)], rtol=1e-3
    )
