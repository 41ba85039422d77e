"""Play what has not been played yet, then report: `python -m benchmarks.compare [--seeds N]`.

Results are kept in `results.jsonl`, one line per player, setting, problem and seed, so that a
comparison can be stopped and continued.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.compare.ours import OURS
from benchmarks.compare.peers import PEERS, Player
from benchmarks.compare.problems import PROBLEMS, ROUNDS
from benchmarks.compare.report import NO_PEERS, write
from oclok.bench.problems.base import Round, fresh_seed

FOLDER = Path(__file__).parent
PLAYERS = {**OURS, **PEERS}
#: Vowpal Wabbit chooses slots by itself and knows no feasible sets.
IMPOSSIBLE = {("Vowpal Wabbit", "channels"), ("Vowpal Wabbit", "movies")}


def main() -> int:
    """Play and report; return the exit code."""
    options = _options()
    path: Path = options.results
    done = _read(path, forget=set(options.again))
    seeds = range(options.first, options.first + options.seeds)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for seed in seeds:
            for problem in options.problems:
                chosen = _settings(done, options.players, problem, options.within)
                _play_all(path, done, chosen, problem, seed, options.rounds)
    if options.report:
        write(list(_read(path).values()), FOLDER)
    return 0


def _settings(
    done: dict[Key, Line], players: list[str], problem: str, within: float
) -> list[tuple[str, str]]:
    """Return players and settings for `problem`: those that were ever `within` of the best peer."""
    best: dict[int, float] = {}
    for (player, _, played, seed), line in done.items():
        if played == problem and player not in NO_PEERS:
            best[seed] = min(best.get(seed, np.inf), float(line["regret"]))
    chosen = []
    for player, settings in ((p, PLAYERS[p]) for p in players if (p, problem) not in IMPOSSIBLE):
        for setting in settings:
            runs = ((seed, done.get((player, setting, problem, seed))) for seed in best)
            ratios = [line["regret"] / best[seed] for seed, line in runs if line is not None]
            if player in NO_PEERS or min(ratios, default=0.0) <= within:
                chosen.append((player, setting))
    return chosen


def _play_all(
    path: Path,
    done: dict[Key, Line],
    settings: list[tuple[str, str]],
    problem: str,
    seed: int,
    count: int,
) -> None:
    """Let everybody who has not yet play `problem` with `seed`."""
    wanted = [each for each in settings if (*each, problem, seed) not in done]
    if not wanted:
        return
    rounds = list(PROBLEMS[problem](count, seed))
    best = [each.oracle.value(each.means, each.oracle(each.means)) for each in rounds]
    for player, setting in wanted:
        try:
            regret, seconds = _play(PLAYERS[player][setting](seed), rounds, best, seed)
        except Exception as reason:
            print(f"{player}, {setting} on {problem}, seed {seed}: {reason!r}", file=sys.stderr)
            continue
        line: Line = {
            "player": player,
            "setting": setting,
            "problem": problem,
            "seed": seed,
            "regret": float(regret.sum()),
            "ms": 1e3 * float(np.median(seconds)),
            "ms_max": 1e3 * float(seconds.max()),
            "curve": regret.cumsum()[9::10].round(4).tolist(),
        }
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{problem:18} {seed:4} {player}, {setting}: {line['regret']:.1f}", flush=True)


def _play(
    player: Player, rounds: list[Round], best: list[float], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return regret and CPU seconds of each round; noise is the same for everybody."""
    regret, seconds = np.empty(len(rounds)), np.empty(len(rounds))
    seeds = fresh_seed(seed).spawn(len(rounds))
    for t, current in enumerate(rounds):
        start = process_time()
        super_arm = player.select(current.contexts, current.oracle)
        seconds[t] = process_time() - start
        outcomes = current.play(super_arm, np.random.default_rng(seeds[t]))
        start = process_time()
        player.learn(current.contexts[super_arm], outcomes)
        seconds[t] += process_time() - start
        regret[t] = best[t] - current.oracle.value(current.means, super_arm)
    return regret, seconds


Key = tuple[str, str, str, int]
Line = dict[str, Any]


def _read(path: Path, forget: set[str] | None = None) -> dict[Key, Line]:
    """Return the lines in `path` by their keys, without players to `forget`; the last one wins."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        (line["player"], line["setting"], line["problem"], line["seed"]): line
        for line in lines
        if line["player"] not in (forget or ())
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many; 5 by default")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--players", nargs="+", choices=PLAYERS, default=list(PLAYERS), metavar="P")
    parser.add_argument(
        "--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="P"
    )
    parser.add_argument(
        "--within",
        type=float,
        default=np.inf,
        help="leave out settings of peers that never came within this factor of the best peer",
    )
    parser.add_argument("--again", nargs="+", default=[], metavar="P", help="play these anew")
    parser.add_argument("--results", type=Path, default=FOLDER / "results.jsonl")
    parser.add_argument("--no-report", dest="report", action="store_false")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
