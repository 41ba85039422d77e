from __future__ import annotations

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from oclok.bench import report
from oclok.bench.analysis import compare
from oclok.bench.analysis.tables import write_table
from oclok.bench.report import write, write_index

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Collects what a page has in it, and refuses tags that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture
def one_figure(monkeypatch):
    """Draw one figure only, in tests of words and tables."""
    monkeypatch.setattr(report, "FIGURES", report.FIGURES[:1])


def keep(folder, rounds, **settings):
    folder.mkdir(exist_ok=True)
    write_table(rounds, folder / "results.csv.gz")
    (folder / "settings.json").write_text(json.dumps(settings))
    return folder


@pytest.fixture(scope="module")
def folder(make_results, tmp_path_factory):
    rounds = make_results("crowdsourcing", repeats=2, certificates=True)
    rounds["delta"] = np.where(rounds["policy"] == "O'CLOK-UCB", 0.3, np.nan)
    folder = keep(
        tmp_path_factory.mktemp("results") / "crowdsourcing",
        rounds,
        title="Simulation I",
        is_from_paper=True,
        seed=7,
        policies=["O'CLOK-UCB", "ACC-UCB"],
        options={"data": None},
    )
    write(folder)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return Page((folder / "report.html").read_text(encoding="utf8"))


def test_the_page_needs_no_other_file_and_no_network(folder, page):
    assert all(img["src"].startswith("data:image/svg+xml;base64,") for img in page.all("img"))
    assert not page.all("script")
    assert not page.all("link")
    for link in page.all("a"):
        assert link["href"].startswith("#"), "a mailed page has no files beside it"
    assert (folder / "report.html").stat().st_size < 3e6


def test_every_figure_is_shown_and_kept_as_pdf_png_and_svg(folder, page):
    names = {"average-reward", "cumulative-regret", "time-per-round"}
    names |= {"regret-and-bounds", "coverage", "paired-regret"}
    files = {path.name for path in (folder / "figures").iterdir()}
    assert files == {f"{name}.{kind}" for name in names for kind in ("pdf", "png", "svg")}
    assert len(page.all("img")) == 6


def test_every_figure_can_be_read_without_being_seen(page):
    alts = [img["alt"] for img in page.all("img")]
    assert len(set(alts)) == 6
    assert all("CC-MAB 0." in alt for alt in alts[:1])


def test_anchors_lead_somewhere_and_ids_are_unique(page):
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    anchors = {link["href"][1:] for link in page.all("a") if link["href"].startswith("#")}
    assert anchors == set(ids)


def test_the_page_says_what_was_run_and_what_came_of_it(page):
    assert "made-up crowdsourcing" in page.text
    assert "seed 7" in page.text
    assert "±" in page.text
    assert "does not hold" in page.text
    assert "The paper: 250 rounds, 5 repeats" in page.text
    assert "Here: 250 rounds, 2 repeats" in page.text
    assert "another size than the paper's" in page.text


def test_one_repeat_without_times_or_bounds_makes_a_page_too(make_results, tmp_path):
    rounds = make_results("movies", repeats=1).drop(columns=["seconds", "reward", "arms"])
    page = Page(write(keep(tmp_path / "movies", rounds)).read_text(encoding="utf8"))
    assert len(page.all("img")) == 2
    assert "±" not in page.text


@pytest.mark.usefixtures("one_figure")
def test_names_from_files_are_text_and_never_markup(make_results, tmp_path):
    rounds = make_results("movies", repeats=1)
    rounds = rounds[rounds["policy"] == "ACC-UCB"].assign(policy="<b>$1 & $2</b>")
    page = Page(write(keep(tmp_path / "x", rounds, title="<i>T</i>")).read_text(encoding="utf8"))
    assert not page.all("b")
    assert not page.all("i")
    assert "<b>$1 & $2</b>" in page.text


def test_the_index_links_every_report_and_counts_its_claims(folder):
    path = write_index(folder.parent, ["crowdsourcing"])
    page = Page(path.read_text(encoding="utf8"))
    assert [link["href"] for link in page.all("a")] == ["#crowdsourcing"]
    assert (path.parent / "crowdsourcing/report.html").exists()
    assert "Simulation I" in page.text
    rows = page.text.count("✓ holds"), page.text.count("✗ does not hold")
    assert f"{rows[0]} hold, {rows[1]} do not" in page.text


@pytest.mark.usefixtures("one_figure")
def test_an_experiment_of_ones_own_is_compared_and_not_judged_by_the_papers_claims(
    make_results, tmp_path
):
    rounds = make_results("movies", repeats=3)  # the name of an experiment of the paper
    folder = keep(tmp_path / "mine", rounds, title="Mine")
    page = Page(write(folder, reference="ACC-UCB").read_text(encoding="utf8"))
    for word in ("claims", "Verdicts", "The paper"):
        assert word not in page.text
    assert "Against ACC-UCB" in page.text
    row = compare(rounds, "ACC-UCB").loc[("", "SO'CLOK-UCB 2")]
    assert f"{row['ratio']:.2f} {row['ratio_low']:.2f} to {row['ratio_high']:.2f}" in page.text


def test_the_promise_in_the_figure_of_bands_is_that_of_the_policies(folder):
    svg = (folder / "figures/coverage.svg").read_text(encoding="utf8")
    assert "Promised: 0.7" in svg
    assert "Promised: 0.95" not in svg


@pytest.mark.usefixtures("one_figure")
def test_settings_are_shown_as_people_would_write_them(make_results, tmp_path):
    settings = {
        "parameters": {"UCB": {}, "Mine": {"width": 0.1 + 0.2, "oracle": None}},
        "code": {"variants": {"": "2fda"}},
        "options": {"data": None},
    }
    folder = keep(tmp_path / "mine", make_results("movies", repeats=1), **settings)
    text = Page(write(folder).read_text(encoding="utf8")).text
    assert "UCB; Mine (width 0.3, oracle –)" in text
    assert "variants (2fda)" in text
    assert "data: –" in text


@pytest.mark.usefixtures("one_figure")
def test_no_share_of_a_benchmark_that_is_not_positive_is_stated(make_results, tmp_path):
    rounds = make_results("movies", repeats=2)
    rounds[["expected_reward", "best_expected_reward"]] -= 5
    page = write(keep(tmp_path / "movies", rounds, title="Sunk")).read_text(encoding="utf8")
    assert "nan" not in page.split("Figures</h2>")[0].lower()
