"""Neural-linear: a network learns features, Bayesian linear regression on them explores.

    φ(x)   activations of the last hidden layer at a context x, and a constant, scaled such
           that the mean of ‖φ‖² over the training data is 1; shape (H + 1,)
    W, c   weights (fan in, fan out) and biases (fan out,) of a hidden layer

Each layer computes max(0, Wᵀx + c). Until the network is first trained, φ is the context and a
constant.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from oclok.errors import NumericalError
from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.policies.linear import LinearRegression, LinearThompson, with_constant
from oclok.typing import FloatArray, Seed
from oclok.validation import as_count


class NeuralLinear(LinearThompson):
    """Thompson sampling on features that a neural network learns (Riquelme et al. 2018).

    A scikit-learn `MLPRegressor` is trained on all outcomes so far, again after every
    `train_every` of them. Its last hidden layer are the features of a Bayesian linear
    regression, whose posterior is sampled as by `LinearThompson` and is exact given the features.

    Args:
        noise_std: σ, standard deviation of the outcomes' noise.
        hidden: how many units each hidden layer has.
        train_every: number of new outcomes after which the network is trained anew.
        prior_std: standard deviation of f before any data, roughly.
        seed: seed of the samples and of the initial weights of the network.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = NeuralLinear(noise_std=0.1, oracle=TopK(1), train_every=20, seed=0)
        >>> x = np.linspace(-1, 1, 40)[:, None]
        >>> policy.observe(x, np.abs(x[:, 0]))
        >>> policy.select([[0.0], [0.9]]).super_arm
        array([1])
    """

    def __init__(
        self,
        noise_std: float,
        oracle: Oracle | None = None,
        *,
        hidden: Sequence[int] = (50, 20),
        train_every: int = 100,
        prior_std: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(noise_std, oracle, prior_std=prior_std, seed=seed)
        self.hidden = tuple(as_count(units, "hidden") for units in hidden)
        self.train_every = as_count(train_every, "train_every")
        self.network: Network | None = None
        self._network_seed = int(self._rng.integers(2**31))
        self._contexts: FloatArray = np.empty((0, 0))
        self._outcomes: FloatArray = np.empty(0)
        self._trained_on = 0

    def _features(self, contexts: FloatArray) -> FloatArray:
        return with_constant(contexts) if self.network is None else self.network.features(contexts)

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        X = np.vstack([self._contexts.reshape(-1, contexts.shape[1]), contexts])
        y = np.append(self._outcomes, outcomes)
        if y.size - self._trained_on >= self.train_every:
            network = train(X, y, self.hidden, self._network_seed)
            features = network.features(X)
            regression = LinearRegression(features.shape[1], self.penalty)
            regression.update(features, y)
            self.network, self._regression, self._trained_on = network, regression, y.size
        else:
            super()._learn(contexts, outcomes)
        self._contexts, self._outcomes = X, y


class Network(Persistent):
    """The hidden layers (W, c) of a network trained on contexts X: from contexts to features."""

    def __init__(self, layers: list[tuple[FloatArray, FloatArray]], X: FloatArray) -> None:
        self._center, self._scale = X.mean(axis=0), _positive(X.std(axis=0))
        self._layers, self._norm = layers, 1.0
        self._norm = float(np.sqrt((self.features(X) ** 2).sum(axis=1).mean()))

    def features(self, contexts: FloatArray) -> FloatArray:
        """Return φ, shape (M, H + 1), at `contexts`, shape (M, D)."""
        values = (contexts - self._center) / self._scale
        for W, c in self._layers:
            values = np.maximum(values @ W + c, 0.0)
        return with_constant(values) / self._norm


def train(X: FloatArray, y: FloatArray, hidden: tuple[int, ...], seed: int) -> Network:
    """Train a network on outcomes y (N,) at contexts X (N, D); the same seed, the same network."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    center, scale = X.mean(axis=0), _positive(X.std(axis=0))
    target = (y - y.mean()) / _positive(y.std())
    model = MLPRegressor(
        hidden_layer_sizes=hidden, solver="lbfgs", alpha=1e-3, max_iter=200, random_state=seed
    )
    with warnings.catch_warnings():  # stopping early is regularisation here, not a failure
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit((X - center) / scale, target)
    layers = list(zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True))
    if not all(np.isfinite(W).all() and np.isfinite(c).all() for W, c in layers):
        raise NumericalError("the weights of the network are not finite after training")
    return Network(layers, X)


def _positive(scale: FloatArray) -> FloatArray:
    return np.where(scale > 0, scale, 1.0)
