from __future__ import annotations

import re
from pathlib import Path

import pytest

from oclok import bench
from oclok.bench.datasets import CATALOGUE, check
from oclok.errors import DataError

DATA = Path(__file__).resolve().parents[4] / "shared/data"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="no real data here")


def test_every_data_set_belongs_to_a_simulation_and_has_a_home():
    names = {getattr(bench, name).name for name in ("Crowdsourcing", "Movies")}
    for dataset in CATALOGUE.strip().split("\n\n"):
        title, home, size, licence, give = dataset.splitlines()
        assert re.search(r"`oclok run (\w+)`", title)[1] in names
        assert "get it from  https://" in home
        assert [line.split()[0] for line in (size, licence, give)] == ["size", "licence", "give"]


def test_nothing_at_a_path_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        check(tmp_path / "none")


def test_a_file_of_another_kind_is_a_data_error(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG")
    with pytest.raises(DataError, match=r"picture\.png"):
        check(path)


@needs_data
def test_check_says_what_is_in_the_real_data():
    assert "573,703 check-ins at 61,858 venues" in check(DATA / "foursquare/TKY_venues.csv.xz")
    assert "100,836 ratings" in check(DATA / "ml-latest-small")
