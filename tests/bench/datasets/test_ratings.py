from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oclok.bench.datasets import movielens
from oclok.bench.datasets.ratings import Ratings, synthetic

SMALL = Path(__file__).resolve().parents[4] / "shared/data/ml-latest-small"

pairs = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 5)), min_size=1, max_size=40, unique=True
)


def made(pairs: list[tuple[int, int]], least: int) -> tuple[Ratings, np.ndarray, np.ndarray]:
    users, movies = np.array(pairs, dtype=np.int32).T
    rng = np.random.default_rng(len(pairs))
    stars = rng.integers(1, 11, users.size).astype(np.float32) / 2
    genres = rng.integers(0, 2, (6, 4)).astype(float)
    return Ratings.of_active_users("made", users, movies, stars, genres, least), stars, genres


@given(pairs=pairs, least=st.integers(1, 4))
def test_users_and_movies_are_numbered_without_gaps(pairs, least):
    ratings, _, _ = made(pairs, least)
    users = [user for user, _ in pairs]
    kept = [(user, movie) for user, movie in pairs if users.count(user) >= least]
    assert len(ratings) == len(kept)
    assert set(ratings.users) == set(range(len({user for user, _ in kept})))
    assert len(ratings.genres) == len({movie for _, movie in kept})
    assert (np.diff(ratings.movies) >= 0).all()


@given(pairs=pairs)
def test_profiles_are_the_weighted_mean_genres_of_each_user(pairs):
    ratings, stars, genres = made(pairs, 1)
    everyone = sorted({user for user, _ in pairs})
    for row, user in enumerate(everyone):
        terms = [
            (star - 0.5) / 4.5 * genres[movie]
            for (who, movie), star in zip(pairs, stars, strict=True)
            if who == user
        ]
        np.testing.assert_allclose(ratings.profiles()[row], np.mean(terms, axis=0), atol=1e-12)


@given(pairs=pairs)
def test_starts_bound_the_ratings_of_each_movie(pairs):
    ratings, _, _ = made(pairs, 1)
    starts = ratings.starts()
    for movie in range(len(ratings.genres)):
        assert (ratings.movies[starts[movie] : starts[movie + 1]] == movie).all()
    assert starts[0] == 0
    assert starts[-1] == len(pairs)


def test_ratings_are_half_stars_and_nobody_rates_a_movie_twice():
    ratings = synthetic()
    assert set(np.unique(ratings.stars)) == set(np.arange(1, 11) / 2)
    pairs = ratings.users.astype(np.int64) * len(ratings.genres) + ratings.movies
    assert np.unique(pairs).size == len(ratings)


def test_every_user_is_active_enough_for_the_paper_s_filter():
    ratings = synthetic()
    counts = np.bincount(ratings.users)
    assert counts.size == 1000
    assert counts.min() >= 200


def test_the_same_arguments_give_the_same_ratings_and_another_seed_others():
    one = synthetic.__wrapped__(users=20, movies=600, seed=3)
    other = synthetic.__wrapped__(users=20, movies=600, seed=3)
    assert np.array_equal(one.stars, other.stars)
    assert np.array_equal(one.movies, other.movies)
    third = synthetic.__wrapped__(users=20, movies=600, seed=4)
    assert not np.array_equal(one.stars[:500], third.stars[:500])


@pytest.mark.skipif(not SMALL.exists(), reason="MovieLens is not here")
def test_synthetic_ratings_resemble_those_of_movielens():
    made, real = synthetic(), movielens.load(SMALL)
    for ratio, of in [
        (0.1, lambda r: r.stars.mean()),
        (0.2, lambda r: r.stars.std()),
        (0.1, lambda r: r.genres[r.movies].sum(axis=1).mean()),
        (0.2, lambda r: np.median(np.bincount(r.users))),
        (0.3, lambda r: np.bincount(r.users).mean()),
    ]:
        assert of(made) == pytest.approx(of(real), rel=ratio)
