from __future__ import annotations

from dataclasses import replace

import pytest

from oclok.bench.analysis.scores import NotMeasured, Scores
from oclok.bench.report.checks import Check, Finding
from oclok.bench.report.verdicts import Claim, judge


def claim(holds, **reasons):
    return Claim("Figure 1", "It is so", Check("so", lambda _: Finding("0.5", holds)), **reasons)


@pytest.fixture(scope="module")
def scores(make_results):
    return Scores(make_results("movies", repeats=1))


@pytest.mark.parametrize(
    ("holds", "word"), [(True, "holds"), (False, "does not hold"), (None, "cannot be told")]
)
def test_a_verdict_has_a_word(scores, holds, word):
    verdict = judge(claim(holds), scores)
    assert (verdict.word, verdict.measured) == (word, "0.5")


def test_what_is_not_measured_says_why(scores):
    def measure(_):
        raise NotMeasured("no CC-MAB")

    verdict = judge(Claim("Figure 1", "It is so", Check("so", measure), note="Why"), scores)
    assert (verdict.word, verdict.measured) == ("not measured", "no CC-MAB")
    assert verdict.explanation == ""


def test_a_claim_that_does_not_hold_says_why_or_that_nothing_was_found(scores):
    assert judge(claim(False, note="On some draws."), scores).explanation == "On some draws."
    assert judge(claim(False), scores).explanation == "No explanation was found."


def test_a_claim_that_holds_needs_no_explanation_and_an_open_one_may_have_it(scores):
    assert judge(claim(True, note="Why"), scores).explanation == ""
    assert judge(claim(None), scores).explanation == ""
    assert judge(claim(None, note="Why"), scores).explanation == "Why"


def test_a_claim_of_slowness_that_fails_is_good_news(scores):
    slow = replace(claim(False), is_slowness=True)
    assert judge(slow, scores).word == "faster here"
    assert judge(replace(slow, is_slowness=False), scores).word == "does not hold"
