from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oclok.bench.datasets import movielens, synthetic

SMALL = Path(__file__).resolve().parents[4] / "shared/data/ml-latest-small"


def test_ratings_are_half_stars_and_nobody_rates_a_movie_twice():
    ratings = synthetic.ratings()
    assert set(np.unique(ratings.stars)) == set(np.arange(1, 11) / 2)
    pairs = ratings.users.astype(np.int64) * len(ratings.genres) + ratings.movies
    assert np.unique(pairs).size == len(ratings)


def test_every_user_is_active_enough_for_the_paper_s_filter():
    ratings = synthetic.ratings()
    assert ratings.number_of_users == 1000
    assert np.bincount(ratings.users).min() >= 200


def test_the_same_arguments_give_the_same_ratings_and_another_seed_others():
    one = synthetic.ratings.__wrapped__(users=20, movies=600, seed=3)
    other = synthetic.ratings.__wrapped__(users=20, movies=600, seed=3)
    assert np.array_equal(one.stars, other.stars)
    assert np.array_equal(one.movies, other.movies)
    third = synthetic.ratings.__wrapped__(users=20, movies=600, seed=4)
    assert not np.array_equal(one.stars[:500], third.stars[:500])


@pytest.mark.skipif(not SMALL.exists(), reason="MovieLens is not here")
def test_synthetic_ratings_resemble_those_of_movielens():
    made, real = synthetic.ratings(), movielens.load(SMALL)
    for ratio, of in [
        (0.1, lambda r: r.stars.mean()),
        (0.2, lambda r: r.stars.std()),
        (0.1, lambda r: r.genres[r.movies].sum(axis=1).mean()),
        (0.2, lambda r: np.median(np.bincount(r.users))),
        (0.3, lambda r: np.bincount(r.users).mean()),
    ]:
        assert of(made) == pytest.approx(of(real), rel=ratio)
