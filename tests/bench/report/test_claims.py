from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from oclok.bench.report.checks import Check, Finding
from oclok.bench.report.claims import CLAIMS, PAPER, THEORY, Claim, check_claims, judge
from oclok.bench.report.scores import NotMeasured, Scores

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
        "The same by cumulative regret": {"SO'CLOK-UCB 20 l=1": 0.88},
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
    results = make_results(experiment, repeats=2, levels=LEVELS[experiment])
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
    assert verdict(make_results(experiment, repeats=2, levels=levels), opening) is False


@pytest.mark.parametrize("opening", SLOW)
def test_a_claim_about_time_fails_on_times_that_refute_it(make_results, opening):
    results = make_results("crowdsourcing", repeats=2)
    assert verdict(timed(results, TIMES | SLOW[opening]), opening) is False


def test_practically_identical_policies_are_found_so(make_results):
    same = {f"{p} l=1": 0.97 for p in ("SO'CLOK-UCB 100", "SO'CLOK-UCB 50")}
    levels = LEVELS["codependency"] | same
    assert verdict(make_results("codependency", repeats=2, levels=levels), IMPOSSIBLE) is True


def test_every_claim_has_results_that_refute_it():
    openings = [opening for parts in (*REFUTED_BY.values(), SLOW) for opening in parts]
    claims = [claim.text for part in CLAIMS.values() for claim in part if claim.text != IMPOSSIBLE]
    assert all(any(text.startswith(opening) for opening in openings) for text in claims)
    assert len(openings) == len(claims)


def test_a_claim_about_an_absent_policy_is_not_measured_and_says_why(make_results):
    results = make_results("crowdsourcing", repeats=2)
    without = results[results["policy"] != "CC-MAB"]
    absent = [v for v in check_claims(without) if not v.is_measured and v.claim not in THEORY]
    assert {v.measured for v in absent} == {"no CC-MAB"}
    about_it = [c for c in CLAIMS["crowdsourcing"] if "CC-MAB" in c.text or "UCB-based" in c.text]
    assert {v.claim.text for v in absent} >= {claim.text for claim in about_it}


def test_a_claim_about_an_absent_lengthscale_is_not_measured(make_results):
    results = make_results("codependency", repeats=2)
    found = check_claims(results[results["variant"] != "l=1"])
    assert "no O'CLOK-UCB at l = 1" in {v.measured for v in found if not v.is_measured}


def test_without_times_claims_about_time_are_not_measured(make_results):
    results = make_results("crowdsourcing", repeats=2).drop(columns="seconds")
    (late,) = [v for v in check_claims(results) if v.claim.text.startswith("O'CLOK-UCB takes")]
    assert late.word == "not measured"
    assert "±" not in late.measured
    assert verdict(timed(results, TIMES), "O'CLOK-UCB takes") is True


def test_lemma_and_theorem_are_judged_by_the_share_of_runs(make_results):
    results = make_results("movies", repeats=2).assign(in_band=1.0, certificate_widths=1e4)
    results = results.assign(certificate_information=2e4)
    assert [verdict(results, claim.text) for claim in THEORY] == [None, None]  # 8 of 8 runs
    many = pd.concat([results.assign(repeat=results["repeat"] + 2 * i) for i in range(10)])
    assert [verdict(many, claim.text) for claim in THEORY] == [True, True]  # 80 of 80
    wrong = many.assign(
        in_band=np.where(many["round"] == 9, 0.0, many["in_band"]),
        certificate_widths=many["certificate_widths"] / 1e4,
    )
    assert [verdict(wrong, claim.text) for claim in THEORY] == [False, False]


def test_another_experiment_has_only_what_is_proved(make_results):
    results = make_results("movies", repeats=2).assign(experiment="channels")
    assert [v.claim for v in check_claims(results)] == list(THEORY)


def test_every_experiment_with_claims_says_how_the_paper_ran_it():
    assert set(PAPER) == set(CLAIMS)


def test_one_repeat_tells_nothing(make_results):
    found = check_claims(make_results("movies", repeats=1, levels=LEVELS["movies"]))
    assert {v.word for v in found if v.claim not in THEORY} == {"inconclusive"}


def scattered(results: pd.DataFrame, policy: str, spread: float) -> pd.DataFrame:
    """Return results in which the rewards of a policy are `spread` off, up and down by repeat."""
    factor = 1 + spread * np.where(results["repeat"] % 2 == 0, 1, -1)
    factor = np.where(results["policy"] == policy, factor, 1.0)
    return results.assign(expected_reward=factor * results["expected_reward"])


def test_more_repeats_decide_what_few_leave_open(make_results):
    found = {}
    for repeats in (4, 20):
        results = make_results("movies", repeats=repeats, levels=LEVELS["movies"])
        found[repeats] = verdict(scattered(results, "SO'CLOK-UCB 2", 0.02), "With 2 inducing")
    assert found == {4: None, 20: True}


def negative(results: pd.DataFrame, repeat: int) -> pd.DataFrame:
    """Return results in which rewards at l = 1 are 3 less in one repeat; regrets stay."""
    loss = 3.0 * ((results["variant"] == "l=1") & (results["repeat"] == repeat))
    return results.assign(
        expected_reward=results["expected_reward"] - loss,
        best_expected_reward=results["best_expected_reward"] - loss,
    )


def test_without_a_positive_benchmark_there_are_no_ratios_but_regrets(make_results):
    levels = LEVELS["codependency"]
    results = make_results("codependency", repeats=3, levels=levels)
    found = {v.claim.text: v for v in check_claims(negative(results, 1))}
    about_5 = next(v for text, v in found.items() if text.startswith("The difference between"))
    assert about_5.word == "inconclusive"
    assert "negative in 1 of 3 repeats" in about_5.measured
    only = next(v for text, v in found.items() if text.startswith("O'CLOK-UCB is the only"))
    assert "less regret by" in only.measured
    worst = next(v for text, v in found.items() if text.startswith("SO'CLOK-UCB with 20"))
    assert worst.word == "holds"  # at one lengthscale, order by regret is order by reward
    assert found["… and about 1% at l = 0.5"].word == "holds"


def made_up(holds, **reasons):
    return Claim("Figure 1", "It is so", Check("so", lambda _: Finding("0.5", holds)), **reasons)


@pytest.fixture(scope="module")
def scores(make_results):
    return Scores(make_results("movies", repeats=1))


@pytest.mark.parametrize(
    ("holds", "word"), [(True, "holds"), (False, "does not hold"), (None, "inconclusive")]
)
def test_a_verdict_has_a_word(scores, holds, word):
    found = judge(made_up(holds), scores)
    assert (found.word, found.measured) == (word, "0.5")


def test_what_is_not_measured_says_why(scores):
    def measure(_):
        raise NotMeasured("no CC-MAB")

    found = judge(Claim("Figure 1", "It is so", Check("so", measure), note="Why"), scores)
    assert (found.word, found.measured) == ("not measured", "no CC-MAB")
    assert found.explanation == ""


def test_a_claim_that_does_not_hold_says_why_or_that_nothing_was_found(scores):
    assert judge(made_up(False, note="On some draws."), scores).explanation == "On some draws."
    assert judge(made_up(False), scores).explanation == "No explanation was found."


def test_a_claim_that_holds_needs_no_explanation_and_an_open_one_may_have_it(scores):
    assert judge(made_up(True, note="Why"), scores).explanation == ""
    assert judge(made_up(None), scores).explanation == ""
    assert judge(made_up(None, note="Why"), scores).explanation == "Why"


def test_a_claim_of_slowness_that_fails_is_good_news(scores):
    slow = replace(made_up(False), is_slowness=True)
    assert judge(slow, scores).word == "faster here"
    assert judge(replace(slow, is_slowness=False), scores).word == "does not hold"
