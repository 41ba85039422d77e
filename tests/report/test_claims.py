from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oclok.report.claims import CLAIMS, PAPER, THEORY, check_claims

#: Final rewards under which each claim of the paper about rewards holds, but for one of two that
#: contradict each other: SO'CLOK-UCB 100 cannot be 5% below O'CLOK-UCB and practically identical.
LEVELS = {
    "crowdsourcing": {
        "O'CLOK-UCB": 0.96,
        "SO'CLOK-UCB 100": 0.95,
        "SO'CLOK-UCB 50": 0.90,
        "SO'CLOK-UCB 20": 0.78,
        "SO'CLOK-UCB 10": 0.61,
        "ACC-UCB": 0.60,
        "CC-MAB": 0.59,
    },
    "codependency": {
        f"{policy} l={scale}": level
        for policy, levels in {
            "O'CLOK-UCB": (0.1, 0.2, 0.5, 0.955, 0.97),
            "SO'CLOK-UCB 100": (0.1, 0.2, 0.5, 0.9455, 0.9215),
            "SO'CLOK-UCB 50": (0.1, 0.2, 0.5, 0.94, 0.92),
            "SO'CLOK-UCB 20": (0.09, 0.19, 0.4, 0.85, 0.82),
            "ACC-UCB": (0.1, 0.15, 0.3, 0.5, 0.6),
            "CC-MAB": (0.1, 0.15, 0.3, 0.5, 0.6),
        }.items()
        for scale, level in zip(("0.01", "0.05", "0.1", "0.5", "1"), levels, strict=True)
    },
    "movies": {"SO'CLOK-UCB 4": 0.995, "SO'CLOK-UCB 2": 0.96, "ACC-UCB": 0.915},
}
IMPOSSIBLE = "With 50 and 100 inducing points it is practically identical to O'CLOK-UCB at l = 1"

#: What makes each claim fail: other rewards, by the claim's opening words.
REFUTED_BY = {
    "crowdsourcing": {
        "The two UCB-based": {"CC-MAB": 0.50},
        "… and are equal": {"SO'CLOK-UCB 10": 0.70},
        "They perform substantially worse": {"SO'CLOK-UCB 20": 0.62},
        "100 inducing points are": {"SO'CLOK-UCB 100": 0.905},
        "The fewer inducing": {"SO'CLOK-UCB 50": 0.955},
        "Even with 20": {"SO'CLOK-UCB 20": 0.70},
        "The performance of SO'CLOK-UCB is": {"SO'CLOK-UCB 100": 0.93},
    },
    "codependency": {
        "No algorithm is able": {"CC-MAB l=0.01": 0.6},
        "As the lengthscale": {"ACC-UCB l=0.1": 0.1},
        "Only the GP": {"ACC-UCB l=1": 0.9},
        "SO'CLOK-UCB with 20": {"SO'CLOK-UCB 50 l=0.05": 0.1},
        "O'CLOK-UCB is near-optimal": {"O'CLOK-UCB l=0.5": 0.94},
        "… but the same": {"SO'CLOK-UCB 100 l=0.5": 0.96, "SO'CLOK-UCB 100 l=1": 0.96},
        "O'CLOK-UCB is the only": {"SO'CLOK-UCB 20 l=1": 0.86},
        "The difference between": {"SO'CLOK-UCB 100 l=1": 0.96},
        "… and about 1%": {"SO'CLOK-UCB 100 l=0.5": 0.90},
    },
    "movies": {
        "With 2 inducing": {"SO'CLOK-UCB 2": 0.93},
        "With 4 inducing points, it is only": {"SO'CLOK-UCB 4": 0.99},
        "With 4 inducing points, it outperforms": {"ACC-UCB": 0.93},
    },
}

#: Milliseconds of round t under which each claim of the paper about time holds.
TIMES = {
    "O'CLOK-UCB": lambda t: 25 * 6e4 * (t / 250) ** 2,
    **{f"SO'CLOK-UCB {s}": lambda t: 5.5 * 6e4 * t / 250 for s in (10, 20, 50, 100)},
    "ACC-UCB": lambda t: 1.0 + 0 * t,
    "CC-MAB": lambda t: 1.2 + 0 * t,
}
SLOW = {
    "The running time": {"O'CLOK-UCB": lambda t: 25 * 6e4 * (t / 250) ** 0.5},
    "O'CLOK-UCB takes": {"O'CLOK-UCB": lambda t: 19 * 6e4 * (t / 250) ** 2},
    "The sparse algorithms are": {"SO'CLOK-UCB 50": lambda t: 3 * 6e4 * t / 250},
    "The sparse algorithms scale": {"SO'CLOK-UCB 20": lambda t: 5.5 * 6e4 * (t / 250) ** 2},
    "SO'CLOK-UCB is slower": {"SO'CLOK-UCB 10": lambda t: 1.1 + 0 * t},
    "The runtime curves": {"CC-MAB": lambda t: 1.6 + 0 * t},
    "ACC-UCB and CC-MAB are": {"SO'CLOK-UCB 10": lambda t: 8.0 + 0 * t},
}


def verdicts(results: pd.DataFrame) -> dict[str, bool | None]:
    return {verdict.claim.text: verdict.holds for verdict in check_claims(results)}


def verdict(results: pd.DataFrame, opening: str) -> bool | None:
    (holds,) = [holds for text, holds in verdicts(results).items() if text.startswith(opening)]
    return holds


def timed(results: pd.DataFrame, times) -> pd.DataFrame:
    seconds = [1e-3 * times[p](t) for p, t in zip(results["policy"], results["round"], strict=True)]
    return results.assign(seconds=seconds)


@pytest.mark.parametrize("experiment", CLAIMS)
def test_all_claims_hold_on_results_that_are_as_the_paper_says(make_results, experiment):
    results = make_results(experiment, repeats=1, levels=LEVELS[experiment])
    if experiment == "crowdsourcing":
        results = timed(results, TIMES)
    found = verdicts(results)
    failing = {text for text, holds in found.items() if holds is False}
    assert failing == ({IMPOSSIBLE} if experiment == "codependency" else set())
    assert [found[claim.text] for claim in THEORY] == [None, None]


@pytest.mark.parametrize(
    ("experiment", "opening"),
    [(experiment, opening) for experiment in REFUTED_BY for opening in REFUTED_BY[experiment]],
)
def test_a_claim_about_rewards_fails_on_results_that_refute_it(make_results, experiment, opening):
    levels = LEVELS[experiment] | REFUTED_BY[experiment][opening]
    assert verdict(make_results(experiment, repeats=1, levels=levels), opening) is False


@pytest.mark.parametrize("opening", SLOW)
def test_a_claim_about_time_fails_on_times_that_refute_it(make_results, opening):
    results = make_results("crowdsourcing", repeats=1)
    assert verdict(timed(results, TIMES | SLOW[opening]), opening) is False


def test_practically_identical_policies_are_found_so(make_results):
    same = {f"{p} l=1": 0.97 for p in ("SO'CLOK-UCB 100", "SO'CLOK-UCB 50")}
    levels = LEVELS["codependency"] | same
    assert verdict(make_results("codependency", repeats=1, levels=levels), IMPOSSIBLE) is True


def test_every_claim_has_results_that_refute_it():
    openings = [opening for parts in (*REFUTED_BY.values(), SLOW) for opening in parts]
    claims = [claim.text for part in CLAIMS.values() for claim in part if claim.text != IMPOSSIBLE]
    assert all(any(text.startswith(opening) for opening in openings) for text in claims)
    assert len(openings) == len(claims)


def test_a_claim_about_an_absent_policy_is_not_measured_and_says_why(make_results):
    results = make_results("crowdsourcing", repeats=1)
    without = results[results["policy"] != "CC-MAB"]
    absent = [v for v in check_claims(without) if v.holds is None and v.claim not in THEORY]
    assert {v.measured for v in absent} == {"no CC-MAB"}
    about_it = [c for c in CLAIMS["crowdsourcing"] if "CC-MAB" in c.text or "UCB-based" in c.text]
    assert {v.claim.text for v in absent} >= {claim.text for claim in about_it}


def test_a_claim_about_an_absent_lengthscale_is_not_measured(make_results):
    results = make_results("codependency", repeats=1)
    found = check_claims(results[results["variant"] != "l=1"])
    assert "no O'CLOK-UCB at l = 1" in {v.measured for v in found if v.holds is None}


def test_without_times_claims_about_time_are_not_measured(make_results):
    results = make_results("crowdsourcing", repeats=1).drop(columns="seconds")
    assert verdict(results, "O'CLOK-UCB takes") is None
    assert verdict(results, "Even with 20") is not None


def test_lemma_and_theorem_are_judged_by_the_share_of_runs(make_results):
    results = make_results("crowdsourcing", repeats=1, certificates=True)
    assert [verdict(results, claim.text) for claim in THEORY] == [True, True]
    wrong = results.assign(
        in_band=np.where(results["round"] == 9, 0.0, results["in_band"]),
        certificate_widths=results["certificate_widths"] / 1e4,
    )
    assert [verdict(wrong, claim.text) for claim in THEORY] == [False, False]


def test_another_experiment_has_only_what_is_proved(make_results):
    results = make_results("movies", repeats=1).assign(experiment="channels")
    assert [v.claim for v in check_claims(results)] == list(THEORY)


def test_every_experiment_with_claims_says_how_the_paper_ran_it():
    assert set(PAPER) == set(CLAIMS)


def test_repeats_show_their_spread_and_one_does_not(make_results):
    for repeats in (1, 2):
        measured = check_claims(make_results("movies", repeats=repeats))[0].measured
        assert ("±" in measured) == (repeats > 1)
