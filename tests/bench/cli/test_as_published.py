from __future__ import annotations

import json
from dataclasses import replace

from oclok.bench.cli import run as run_module
from oclok.bench.experiments import EXPERIMENTS

SMALL = ("--rounds", "2", "--repeats", "2", "--policies", "acc-ucb", "--jobs", "1")


def title(folder):
    return json.loads((folder / "settings.json").read_text(encoding="utf8"))["title"]


def test_as_published_has_a_folder_of_its_own_and_says_what_it_did(oclok, tmp_path):
    assert oclok("run", "movies", "--as-published", *SMALL)[0] == 0
    folder = tmp_path / "results/as-published/movies"
    assert "shared-numbers" in title(folder)
    assert "as published" in (folder / "report.html").read_text(encoding="utf8")


def test_a_single_quirk_can_be_turned_on(oclok, tmp_path):
    assert oclok("run", "crowdsourcing", "--quirk", "one-draw", *SMALL)[0] == 0
    assert title(tmp_path / "results/one-draw/crowdsourcing").endswith("as published (one-draw)")


def test_an_unknown_quirk_is_an_error_that_lists_the_known_ones(oclok):
    code, _, err = oclok("run", "crowdsourcing", "--quirk", "magic", *SMALL)
    assert code == 2
    assert "no quirk 'magic'; it has jitter, one-draw, max-arms" in err


def test_the_paper_as_published_stands_beside_ours_on_the_index_page(oclok, monkeypatch, tmp_path):
    names = ("crowdsourcing", "channels")
    few = [replace(EXPERIMENTS[name], policies=EXPERIMENTS[name].policies[-2:]) for name in names]
    monkeypatch.setattr(run_module, "PAPER", few)
    size = ("--rounds", "3", "--repeats", "2", "--jobs", "1")
    assert oclok("paper", *size)[0] == 0
    index = tmp_path / "results/index.html"
    assert "As published" not in index.read_text(encoding="utf8")
    assert oclok("paper", "--as-published", *size)[0] == 0
    page = index.read_text(encoding="utf8")
    assert page.count('<th scope="col">As published</th>') == 1
    assert "as-published/crowdsourcing/report.html" in page
    assert not (tmp_path / "results/as-published/channels").exists()
