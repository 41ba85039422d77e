from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from oclok import UCB
from oclok.oracles import TopK
from oclok.policies.drift import DriftWatch
from oclok.posterior import DictionaryPosterior, MixturePosterior
from oclok.posterior.base import Posterior
from oclok.typing import FloatArray


def learn(
    watch: DriftWatch,
    posterior: Posterior,
    sign: float,
    seeds: range,
    speed: float = 0.0,
    freedom: float = np.inf,
) -> tuple[Posterior, int]:
    """Let a posterior learn sign · sin, 5 outcomes at a time; return how often it changed, too."""
    changes = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.random((5, 1))
        noise = rng.normal(size=5) if freedom == np.inf else rng.standard_t(freedom, 5)
        y = sign * np.sin(5 * X[:, 0] + speed * seed) + 0.1 * noise
        following = watch.succeed(posterior, X, y)
        changes += following is not posterior
        posterior = following
        watch.watch(posterior, posterior.learn(X, y)[0])
    return posterior, changes


def made() -> DictionaryPosterior:
    return DictionaryPosterior(RBF(0.5), 0.1)


def test_a_world_that_moves_is_noticed_and_learned_anew() -> None:
    watch = DriftWatch()
    posterior, _ = learn(watch, made(), 1.0, range(40))
    posterior, changes = learn(watch, posterior, -1.0, range(40, 60))
    x = np.linspace(0, 1, 9)[:, None]
    assert changes == 1
    np.testing.assert_allclose(posterior.predict(x).mean, -np.sin(5 * x[:, 0]), atol=0.3)


def test_a_world_that_stays_is_not_forgotten() -> None:
    for start in range(0, 1_000, 200):
        assert learn(DriftWatch(), made(), 1.0, range(start, start + 200))[1] == 0


def test_outliers_do_not_pass_for_a_world_that_moves() -> None:
    for start in range(0, 600, 200):
        seeds = range(start, start + 200)
        assert learn(DriftWatch(), MixturePosterior(), 1.0, seeds, freedom=2.0)[1] == 0


def test_a_world_that_moves_slowly_raises_no_alarm_but_is_followed() -> None:
    x = np.linspace(0, 1, 9)[:, None]
    truth = np.sin(5 * x[:, 0] + 0.01 * 200)
    posterior, _ = learn(DriftWatch(), MixturePosterior(), 1.0, range(200), 0.01)
    alone = MixturePosterior()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = rng.random((5, 1))
        alone.update(X, np.sin(5 * X[:, 0] + 0.01 * seed) + 0.1 * rng.normal(size=5))
    error, error_alone = (np.abs(p.predict(x).mean - truth).mean() for p in (posterior, alone))
    assert error < 0.5 * error_alone


def test_a_policy_that_is_loaded_while_in_doubt_goes_on_as_the_saved_one(tmp_path: Path) -> None:
    def play(policy: UCB, rounds: range) -> list[FloatArray]:
        chosen = []
        for t in rounds:
            rng = np.random.default_rng(t)
            decision = policy.select(rng.random((10, 2)))
            x = decision.contexts[:, 0]
            y = np.sin(5 * x) if t < 20 else 3 - 9 * x
            policy.update(decision, y + 0.1 * rng.normal(size=len(x)))
            chosen.append(decision.super_arm)
        return chosen

    policy = UCB(oracle=TopK(4))
    before = 20
    play(policy, range(before))
    while not policy.changes and before < 40:  # save after every round until it has changed
        policy.save(tmp_path / "policy")
        loaded = UCB.load(tmp_path / "policy")
        play(policy, range(before, before + 1))
        before += 1
    assert policy.changes
    play(loaded, range(before - 1, before))
    assert loaded.changes == policy.changes
    np.testing.assert_array_equal(
        play(loaded, range(before, before + 8)), play(policy, range(before, before + 8))
    )
