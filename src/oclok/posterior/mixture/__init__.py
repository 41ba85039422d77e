"""The posterior that needs no choice: a mixture over kernels, noise levels and scales."""

from oclok.posterior.mixture.posterior import MixturePosterior

__all__ = ["MixturePosterior"]
