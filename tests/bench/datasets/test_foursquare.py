from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from oclok.bench.datasets import foursquare
from oclok.errors import DataError

VENUES = Path(__file__).resolve().parents[4] / "shared/data/foursquare/TKY_venues.csv.xz"

TABLE = """venue,foursquare_id,latitude,longitude,checkins
1,a,35.0,139.0,1
2,b,35.5,139.2,6
3,c,36.0,140.0,3
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "venues.csv"
    path.write_text(TABLE)
    return path


@pytest.fixture
def original(tmp_path):
    """Return the same check-ins as in `TABLE`, in the form of the original data set."""
    rows = []
    for venue, latitude, longitude, count in [("c", 36.0, 140.0, 3), ("a", 35.0, 139.0, 1)]:
        rows += [(venue, latitude, longitude)] * count
    rows += [("b", 35.5, 139.2)] * 6
    path = tmp_path / "dataset_TSMC2014_TKY.txt"
    lines = [
        f'{user}\t{venue}\tid{user}\tCaf\xe9 "Sushi\t{latitude}\t{longitude}\t540\tTue Apr 03'
        for user, (venue, latitude, longitude) in enumerate(rows)
    ]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    return path


def test_venues_are_scaled_to_the_unit_square(table):
    found = foursquare.load(table)
    np.testing.assert_allclose(found.locations, [[0, 0], [0.2, 0.5], [1, 1]], atol=1e-12)
    assert found.checkins.tolist() == [1, 6, 3]
    assert found.name == "Foursquare venues"


def test_the_original_file_holds_the_same_as_a_table_of_its_venues(table, original):
    one, other = foursquare.load(table), foursquare.load(original)
    np.testing.assert_allclose(one.locations, other.locations)
    assert np.array_equal(one.checkins, other.checkins)


def test_a_compressed_table_is_read_as_it_is(table, tmp_path):
    packed = tmp_path / "venues.csv.xz"
    packed.write_bytes(lzma.compress(table.read_bytes()))
    assert np.array_equal(foursquare.load(packed).locations, foursquare.load(table).locations)


def test_venues_are_drawn_as_often_as_people_checked_in(table):
    drawn = foursquare.load(table).sample(20_000, np.random.default_rng(0))
    shares = [(drawn[:, 0] == x).mean() for x in (0.0, drawn[:, 0][drawn[:, 1] == 0.5][0], 1.0)]
    np.testing.assert_allclose(shares, [0.1, 0.6, 0.3], atol=0.015)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("venues.csv", "latitude,longitude\n1,2\n", "checkins"),
        ("venues.csv", "", "No columns"),
        ("venues.csv", "latitude,longitude,checkins\n", "no rows"),
        ("venues.csv", TABLE.replace("139.2", "east"), "east"),
        ("venues.csv", TABLE.replace("139.2", "inf"), "without a location"),
        ("venues.csv", TABLE.replace("139.2,6", "139.2,0"), "less than one check-in"),
        ("venues.csv", "latitude,longitude,checkins\n1,2,3\n", "one line"),
        ("venues.csv.xz", "this is not xz", "get a fresh copy"),
        ("check-ins.txt", "1\t2\t3\n", "columns"),
        ("venues.parquet", "PAR1", r"\.csv\.xz"),
    ],
)
def test_a_malformed_file_is_a_data_error_on_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(DataError, match=message) as error:
        foursquare.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_cut_off_archive_is_a_data_error(table, tmp_path):
    packed = tmp_path / "venues.csv.xz"
    packed.write_bytes(lzma.compress(table.read_bytes() * 100)[:-40])
    with pytest.raises(DataError, match="fresh copy"):
        foursquare.load(packed)


def test_a_missing_file_is_a_data_error_that_says_what_to_give(tmp_path):
    with pytest.raises(DataError, match=r"dataset_TSMC2014_TKY\.txt"):
        foursquare.load(tmp_path / "none.txt")


@pytest.mark.skipif(not VENUES.exists(), reason="the Foursquare venues are not here")
def test_tokyo_has_as_many_check_ins_as_the_paper_says():
    found = foursquare.load(VENUES)
    assert found.checkins.sum() == 573_703
    assert found.checkins.size == 61_858


def test_locations_fill_the_unit_square_and_never_leave_it():
    drawn = foursquare.tokyo().sample(50_000, np.random.default_rng(0))
    assert drawn.shape == (50_000, 2)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    assert np.ptp(drawn, axis=0).min() > 0.95


def test_a_mixture_is_what_its_parameters_say():
    factors = np.array([[[0.05, 0.0], [0.03, 0.04]], [[0.02, 0.0], [0.0, 0.02]]])
    mixture = foursquare.Mixture(
        "two", np.array([0.25, 0.75]), np.array([[0.3, 0.3], [0.7, 0.8]]), factors
    )
    drawn = mixture.sample(40_000, np.random.default_rng(1))
    first = drawn[drawn.sum(axis=1) < 1.05]
    assert len(first) / len(drawn) == pytest.approx(0.25, abs=0.01)
    np.testing.assert_allclose(first.mean(axis=0), [0.3, 0.3], atol=0.002)
    np.testing.assert_allclose(np.cov(first.T), factors[0] @ factors[0].T, atol=1e-4)


@pytest.mark.skipif(not VENUES.exists(), reason="the Foursquare venues are not here")
def test_the_mixture_has_the_moments_of_the_check_ins():
    rng = np.random.default_rng(0)
    real = foursquare.load(VENUES).sample(100_000, rng)
    made = foursquare.tokyo().sample(100_000, rng)
    np.testing.assert_allclose(made.mean(axis=0), real.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(np.cov(made.T), np.cov(real.T), atol=0.002)
    shares = [np.histogram2d(*part.T, bins=4, range=[[0, 1]] * 2)[0] / 1e5 for part in (real, made)]
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.06
