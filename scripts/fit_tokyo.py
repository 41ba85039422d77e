"""Fit the Gaussian mixture that stands for the check-ins of Tokyo, and write its parameters.

    python scripts/fit_tokyo.py path/to/dataset_TSMC2014_TKY.txt

Components are chosen by their likelihood on check-ins at venues that were held out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.mixture import GaussianMixture

from oclok.bench.datasets import foursquare

TARGET = Path(__file__).resolve().parents[1] / "src" / "oclok" / "bench" / "datasets" / "tokyo.json"
CHECKINS = 60_000


def main() -> None:
    """Fit mixtures of several sizes and keep the one that predicts held-out venues best."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="check-ins of Tokyo, or a table of their venues")
    checkins = foursquare.load(parser.parse_args().data)
    rng = np.random.default_rng(0)
    held_out = rng.random(checkins.checkins.size) < 0.2
    train, test = (
        foursquare.CheckIns(checkins.name, checkins.locations[part], checkins.checkins[part])
        for part in (~held_out, held_out)
    )
    fits = []
    for components in (5, 10, 20, 30, 40):
        mixture = GaussianMixture(components, random_state=0, reg_covar=1e-4)
        mixture.fit(train.sample(CHECKINS, rng))
        score = float(mixture.score(test.sample(CHECKINS, rng)))
        print(f"{components} components: {score:.4f} nats per held-out check-in")
        fits.append((score, components))
    best = max(fits)[1]
    mixture = GaussianMixture(best, random_state=0, reg_covar=1e-4)
    mixture.fit(checkins.sample(CHECKINS, rng))
    parameters = {
        "about": f"Gaussian mixture fitted by scripts/fit_tokyo.py to {checkins.name}: "
        f"{checkins.checkins.sum()} check-ins at {checkins.checkins.size} venues, longitude and "
        "latitude scaled to [0, 1]",
        "weights": mixture.weights_.round(6).tolist(),
        "means": mixture.means_.round(6).tolist(),
        "covariances": mixture.covariances_.round(9).tolist(),
    }
    TARGET.write_text(json.dumps(parameters, indent=1) + "\n", encoding="utf8")
    print(f"wrote {best} components to {TARGET}")


if __name__ == "__main__":
    main()
