from __future__ import annotations

from functools import partial

import pytest

from oclok.bench import Channels
from oclok.bench.experiments import Experiment, PolicySpec
from oclok.bench.experiments.simulations import oclok_ucb
from oclok.policies import ACCUCB, Random


@pytest.fixture(scope="session")
def small():
    """Two variants, three policies of which one depends on the horizon, three horizons."""
    return Experiment(
        name="small",
        title="A small experiment",
        variants={f"k={k}": partial(Channels, k=k, mean_users=5) for k in (2, 3)},
        policies=[
            PolicySpec("SO'CLOK-UCB 4", partial(oclok_ucb, inducing=4)),
            PolicySpec("ACC-UCB", ACCUCB),
            PolicySpec("Random", Random, note="learns nothing"),
        ],
        rounds=20,
        horizons=3,
        repeats=2,
    )
