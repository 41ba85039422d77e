from __future__ import annotations

import numpy as np
import pytest

from oclok.errors import FeedbackError
from oclok.posterior.observations import Observations


def test_the_latest_of_equal_outcomes_is_found_each_once() -> None:
    known = Observations()
    known.extend(np.array([[0.0], [1.0], [0.0], [0.0]]), np.array([5.0, 5.0, 5.0, 6.0]))
    assert known.find(np.zeros((2, 1)), np.array([5.0, 5.0])).tolist() == [2, 0]
    with pytest.raises(FeedbackError, match=r"no outcome 6\.0"):
        known.find(np.ones((1, 1)), np.array([6.0]))


def test_after_all_outcomes_were_dropped_contexts_may_have_another_dimension() -> None:
    observations = Observations()
    observations.extend(np.zeros((3, 2)), np.zeros(3))
    observations.truncate(0)
    assert observations.dimension is None
    observations.extend(np.ones((1, 5)), np.zeros(1))
    np.testing.assert_array_equal(observations.contexts, np.ones((1, 5)))
