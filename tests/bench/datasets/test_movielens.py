from __future__ import annotations

import zipfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from oclok.bench.datasets import movielens
from oclok.errors import DataError

SMALL = Path(__file__).resolve().parents[4] / "shared/data/ml-latest-small"
needs_small = pytest.mark.skipif(not SMALL.exists(), reason="MovieLens is not here")

MOVIES = """movieId,title,genres
1,"Story, Toy (1995)",Action|Comedy
5,Solaris (1972),Drama|Sci-Fi
3,Untagged (2001),(no genres listed)
"""
RATINGS = """userId,movieId,rating,timestamp
1,1,4.0,1420070400
1,5,0.5,1500000000
1,3,5.0,1420070399
7,1,5.0,1500000000
7,5,2.0,1600000000
9,5,3.0,1600000000
"""


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "ml-tiny"
    path.mkdir()
    (path / "movies.csv").write_text(MOVIES)
    (path / "ratings.csv").write_text(RATINGS)
    return path


def test_only_recent_ratings_of_active_users_are_kept(folder):
    ratings = movielens.load(folder, least=2)
    assert ratings.name == "MovieLens ml-tiny"
    rows = np.column_stack([ratings.users, ratings.movies, ratings.stars])
    assert rows.tolist() == [[0, 0, 4.0], [1, 0, 5.0], [0, 1, 0.5], [1, 1, 2.0]]


def test_the_time_from_which_ratings_count_can_be_chosen(folder):
    assert len(movielens.load(folder, since=datetime(1990, 1, 1, tzinfo=UTC), least=1)) == 6
    assert len(movielens.load(folder, since=datetime(2016, 1, 1, tzinfo=UTC), least=1)) == 4


def test_genres_are_those_of_the_movies(folder):
    genres = movielens.load(folder, since=datetime(1990, 1, 1, tzinfo=UTC), least=1).genres
    named = [{movielens.GENRES[i] for i in np.flatnonzero(row)} for row in genres]
    assert named == [{"Action", "Comedy"}, {"(no genres listed)"}, {"Drama", "Sci-Fi"}]
    assert len(movielens.GENRES) == 20


def test_a_zip_file_is_as_good_as_its_folder(folder, tmp_path):
    packed = tmp_path / "ml-tiny.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("movies.csv", "ratings.csv"):
            archive.write(folder / name, f"ml-tiny/{name}")
    one, other = movielens.load(folder, least=2), movielens.load(packed, least=2)
    assert one.name == other.name
    assert np.array_equal(one.users, other.users)
    assert np.array_equal(one.genres, other.genres)
    assert movielens.summary(folder) == movielens.summary(packed)


def test_a_file_of_many_blocks_is_read_whole(folder):
    rng = np.random.default_rng(0)
    count = 600_000
    rows = np.column_stack([rng.integers(1, 2000, count), rng.choice([1, 3, 5], count)])
    body = "".join(f"{user},{movie},3.5,1500000000\n" for user, movie in rows.tolist())
    (folder / "ratings.csv").write_text("userId,movieId,rating,timestamp\n" + body)
    ratings = movielens.load(folder, least=1)
    assert len(ratings) == count
    assert np.array_equal(np.bincount(ratings.movies), np.bincount(rows[:, 1])[[1, 3, 5]])


def test_a_summary_counts_what_the_filters_leave(folder):
    expected = "6 ratings of 3 movies by 3 users; 5 since 2015-01-01, 0 users"
    assert expected in movielens.summary(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ratings.csv", "", "No columns"),
        ("ratings.csv", "userId,movieId,rating,timestamp\n", "no rows"),
        ("ratings.csv", RATINGS.replace("timestamp", "when"), "timestamp"),
        ("ratings.csv", RATINGS.replace("4.0", "good"), "good"),
        ("ratings.csv", RATINGS.replace("4.0", ""), "rating"),
        ("ratings.csv", RATINGS.replace("4.0", "inf"), "outside 0.5"),
        ("ratings.csv", RATINGS.replace("4.0", "6.0"), "outside 0.5"),
        ("ratings.csv", RATINGS.replace("9,5", "-9,5"), "negative"),
        ("ratings.csv", RATINGS.replace("9,5", "9,77"), "movie 77"),
        ("ratings.csv", RATINGS + "1,5\n", "columns"),
        ("movies.csv", "", "No columns"),
        ("movies.csv", "movieId,title,genres\n", "no rows"),
        ("movies.csv", MOVIES.replace("genres", "kinds", 1), "genres"),
        ("movies.csv", MOVIES.replace("Sci-Fi", "Sci-Fy"), "Sci-Fy"),
        ("movies.csv", MOVIES.replace("5,Sol", "five,Sol"), "five"),
    ],
)
def test_a_malformed_file_is_a_data_error_on_one_line(folder, name, content, message):
    (folder / name).write_text(content)
    for read in (lambda path: movielens.load(path, least=1), movielens.summary):
        with pytest.raises(DataError, match=message) as error:
            read(folder)
        assert str(folder) in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["ratings.csv", "movies.csv"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"no {name}"):
        movielens.load(folder)


def test_a_missing_folder_is_a_data_error_that_says_what_to_give(tmp_path):
    with pytest.raises(DataError, match="such as ml-25m"):
        movielens.load(tmp_path / "none")


def test_a_file_that_is_no_zip_file_is_a_data_error(folder):
    with pytest.raises(DataError, match="zip"):
        movielens.load(folder / "ratings.csv")


def test_filters_that_leave_nobody_are_a_data_error(folder):
    with pytest.raises(DataError, match="no user has 200 ratings since 2015-01-01"):
        movielens.load(folder)


@needs_small
def test_the_small_data_set_has_39_users_that_pass_the_paper_s_filters():
    ratings = movielens.load(SMALL)
    counts = np.bincount(ratings.users)
    assert counts.size == 39
    assert counts.min() >= 200
    for part in ("100,836 ratings", "610 users", "27,935 since", "39 users with at least 200"):
        assert part in movielens.summary(SMALL)
