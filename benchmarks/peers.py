"""Other libraries' Gaussian processes behind the index and the oracle of O'CLOK-UCB.

Each peer has `predict(contexts) -> (mean, std)` and `learn(contexts, outcomes)`, and does there
what its own documentation recommends for data that comes bit by bit. All work in float64 with
the same fixed kernel and noise; none is asked to fit hyperparameters.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from benchmarks.environment import has
from benchmarks.workload import NOISE_STD, ORACLE, exact
from oclok import Decision

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")


def available() -> dict[str, type[Peer]]:
    """Return the peers that are installed, by name."""
    peers: dict[str, type[Peer]] = {"scikit-learn, refit": ScikitLearn}
    if has("gpflow"):
        peers["GPflow, batched"] = GPflow
    if has("gpytorch"):
        peers["GPyTorch, get_fantasy_model"] = GPyTorch
    if has("botorch"):
        peers["BoTorch, condition_on_observations"] = BoTorch
    return peers


class Peer(ABC):
    """A Gaussian process with zero mean, RBF(1) and noise of standard deviation 0.1."""

    def __init__(self) -> None:
        self.round = 0
        self.X = np.empty((0, 3))
        self.y = np.empty(0)
        self._beta = exact().beta

    def select(self, contexts: np.ndarray) -> Decision:
        """Choose as O'CLOK-UCB does: the same index, the same oracle."""
        self.round += 1
        mean, std = np.zeros(len(contexts)), np.ones(len(contexts))
        if len(self.y):
            mean, std = self.predict(contexts)
        index = mean + math.sqrt(self._beta(self.round, len(contexts))) * std
        super_arm = ORACLE(index)
        return Decision(self.round, super_arm, contexts[super_arm], index[super_arm])

    def update(self, decision: Decision, outcomes: np.ndarray) -> None:
        """Learn the outcomes of a decision."""
        self.X = np.vstack([self.X, decision.contexts])
        self.y = np.concatenate([self.y, outcomes])
        self.learn(decision.contexts, outcomes)

    @abstractmethod
    def predict(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of f, each (M,)."""

    @abstractmethod
    def learn(self, contexts: np.ndarray, outcomes: np.ndarray) -> None:
        """Take in new data; `self.X` and `self.y` have them already."""


class ScikitLearn(Peer):
    """scikit-learn has no way to add data: a fit each round."""

    def predict(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of f, each (M,)."""
        return self._model.predict(contexts, return_std=True)

    def learn(self, contexts: np.ndarray, outcomes: np.ndarray) -> None:
        """Fit all data."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF

        model = GaussianProcessRegressor(RBF(1.0), alpha=NOISE_STD**2, optimizer=None)
        self._model = model.fit(self.X, self.y)


class GPflow(Peer):
    """GPflow has no way to add data: a model each round, asked for all base arms at once."""

    def predict(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of f, each (M,)."""
        mean, variance = self._model.predict_f(contexts)
        return mean.numpy()[:, 0], np.sqrt(variance.numpy()[:, 0])

    def learn(self, contexts: np.ndarray, outcomes: np.ndarray) -> None:
        """Make a model of all data."""
        import gpflow

        kernel = gpflow.kernels.SquaredExponential(variance=1.0, lengthscales=1.0)
        data = (self.X, self.y[:, None])
        self._model = gpflow.models.GPR(data, kernel, noise_variance=NOISE_STD**2)


class GPflowArmByArm(GPflow):
    """GPflow as the scripts of the paper use it: one prediction for each base arm."""

    def predict(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of f, each (M,)."""
        parts = [super(GPflowArmByArm, self).predict(x[None]) for x in contexts]
        mean, std = zip(*parts, strict=True)
        return np.concatenate(mean), np.concatenate(std)


class GPyTorch(Peer):
    """GPyTorch extends the factor of an exact model with new data."""

    def predict(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of f, each (M,)."""
        torch, _ = _torch()
        with torch.no_grad(), _exact_algebra():
            f = self._model(torch.from_numpy(contexts))
            return f.mean.numpy(), f.variance.sqrt().numpy()

    def learn(self, contexts: np.ndarray, outcomes: np.ndarray) -> None:
        """Condition the model on new data."""
        torch, _ = _torch()
        X, y = torch.from_numpy(contexts.copy()), torch.from_numpy(outcomes)
        with torch.no_grad(), _exact_algebra():
            if len(self.y) == len(outcomes):
                self._model = _gpytorch_model(X, y)
            else:
                self._model = self._model.get_fantasy_model(X, y)


class BoTorch(Peer):
    """BoTorch conditions a model on new data."""

    def predict(self, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of f, each (M,)."""
        torch, _ = _torch()
        with torch.no_grad(), _exact_algebra():
            f = self._model.posterior(torch.from_numpy(contexts))
            return f.mean.numpy()[:, 0], f.variance.sqrt().numpy()[:, 0]

    def learn(self, contexts: np.ndarray, outcomes: np.ndarray) -> None:
        """Condition the model on new data."""
        torch, _ = _torch()
        X, y = torch.from_numpy(contexts.copy()), torch.from_numpy(outcomes)[:, None]
        noise = torch.full_like(y, NOISE_STD**2)
        with torch.no_grad(), _exact_algebra():
            if len(self.y) == len(outcomes):
                self._model = _botorch_model(X, y, noise)
            else:
                self._model = self._model.condition_on_observations(X, y, noise=noise)


def _torch() -> tuple[Any, Any]:
    import gpytorch
    import torch

    return torch, gpytorch


def _exact_algebra() -> Any:
    """Use Cholesky factors at every size; conjugate gradients, from 800 on, are approximate."""
    return _torch()[1].settings.max_cholesky_size(1_000_000)


def _gpytorch_model(X: Any, y: Any) -> Any:
    _, gpytorch = _torch()

    class Model(gpytorch.models.ExactGP):
        def __init__(self) -> None:
            likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
            likelihood.noise = NOISE_STD**2
            super().__init__(X, y, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = gpytorch.kernels.RBFKernel().double()
            self.kernel.lengthscale = 1.0

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    return Model().eval()


def _botorch_model(X: Any, y: Any, noise: Any) -> Any:
    _, gpytorch = _torch()
    from botorch.models import SingleTaskGP

    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = 1.0
    model = SingleTaskGP(
        X,
        y,
        train_Yvar=noise,
        covar_module=kernel,
        mean_module=gpytorch.means.ZeroMean(),
        outcome_transform=None,
    )
    return model.eval()
