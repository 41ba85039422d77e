"""Names for what travels between posteriors, policies and oracles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel
else:  # `import oclok` need not load it
    Kernel: TypeAlias = Any

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
#: What `np.random.default_rng` makes a generator of.
Seed: TypeAlias = int | np.random.SeedSequence | None

__all__ = ["ArrayLike", "BoolArray", "FloatArray", "IntArray", "Kernel", "Seed"]
