"""Play what has not been played yet, then report: `python -m benchmarks.compare`.

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
from benchmarks.compare.peers import PEERS, TABLE_PEERS, Player
from benchmarks.compare.problems import PROBLEMS, ROUNDS
from benchmarks.compare.report import NO_PEERS, write
from benchmarks.compare.tables import TABLES
from oclok.bench.problems.base import Problem, Round, fresh_seed

FOLDER = Path(__file__).parent
#: Those with a kernel of their own are not for raw tables.
TABLE_PLAYERS = {p: s for p, s in OURS.items() if "UCB" not in p} | TABLE_PEERS
PLAYERS = {**OURS, **PEERS, **TABLE_PLAYERS}
#: Vowpal Wabbit chooses slots by itself and knows no feasible sets.
IMPOSSIBLE = {("Vowpal Wabbit", "channels"), ("Vowpal Wabbit", "movies")}

Key = tuple[str, str, str, int]
Line = dict[str, Any]


def main() -> int:
    """Play and report; return the exit code."""
    options = _options()
    path: Path = options.results
    if options.again:
        kept = [line for line in _read(path).values() if line["player"] not in options.again]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    done = _read(path)
    seeds = range(options.first, options.first + options.seeds)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for seed in seeds:
            for problem in [*options.tables, *options.problems]:
                chosen = _settings(done, options.players, problem, options.within)
                wanted = [each for each in chosen if (*each, problem, seed) not in done]
                if wanted:
                    _play_all(path, wanted, problem, seed, options.rounds)
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
    for player in players:
        if (player, problem) in IMPOSSIBLE:
            continue
        for setting in _players(problem).get(player, {}):
            runs = ((seed, done.get((player, setting, problem, seed))) for seed in best)
            ratios = [line["regret"] / best[seed] for seed, line in runs if line is not None]
            if player in NO_PEERS or min(ratios, default=0.0) <= within:
                chosen.append((player, setting))
    return chosen


def _players(problem: str) -> dict[str, Any]:
    return TABLE_PLAYERS if problem in TABLES else {**OURS, **PEERS}


def _play_all(
    path: Path, wanted: list[tuple[str, str]], problem: str, seed: int, count: int
) -> None:
    """Let everybody who has not yet play `problem` with `seed`."""
    made: Problem = (TABLES.get(problem) or PROBLEMS[problem])(count, seed)
    rounds = list(made)
    best = [each.oracle.value(each.means, each.oracle(each.means)) for each in rounds]
    for player, setting in wanted:
        playing = _players(problem)[player][setting](seed)
        try:
            regret, seconds = play(playing, rounds, best, seed)
        except Exception as reason:
            print(f"{player}, {setting} on {problem}, seed {seed}: {reason!r}", file=sys.stderr)
            continue
        line: Line = {
            "player": player,
            "setting": setting,
            "problem": problem,
            "seed": seed,
            "regret": float(f"{regret.sum():.6g}"),
            "late": float(f"{regret[len(regret) // 2 :].sum():.6g}"),
            "ms": round(1e3 * float(np.median(seconds)), 3),
            "ms_first": round(1e3 * float(seconds[0]), 2),
            "ms_max": round(1e3 * float(seconds.max()), 2),
        }
        if coverage := getattr(playing, "coverage", lambda: None)():
            line["coverage"] = round(coverage, 4)
        with path.open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        print(f"{problem:18} {seed:4} {player}, {setting}: {line['regret']:.4g}", flush=True)


def play(
    player: Player, rounds: list[Round], best: list[float], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return regret and CPU seconds of each round; noise is the same for everybody."""
    regret, seconds = np.empty(len(rounds)), np.empty(len(rounds))
    seeds = fresh_seed(seed).spawn(len(rounds))
    for t, current in enumerate(rounds):
        start = process_time()
        super_arm = player.select(current)
        seconds[t] = process_time() - start
        outcomes = current.play(super_arm, np.random.default_rng(seeds[t]))
        start = process_time()
        player.learn(current, super_arm, outcomes)
        seconds[t] += process_time() - start
        regret[t] = best[t] - current.oracle.value(current.means, super_arm)
    return regret, seconds


def _read(path: Path) -> dict[Key, Line]:
    """Return the lines in `path` by their keys; the last one wins."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        (each["player"], each["setting"], each["problem"], each["seed"]): each for each in lines
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many; 5 by default")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--players", nargs="+", choices=PLAYERS, default=list(PLAYERS), metavar="P")
    for suite, names in (("tables", TABLES), ("problems", PROBLEMS)):
        parser.add_argument(
            f"--{suite}", nargs="*", choices=names, metavar="P", help=f"some or all of the {suite}"
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
    options = parser.parse_args()
    is_all = options.tables is None and options.problems is None
    for suite, names in (("tables", TABLES), ("problems", PROBLEMS)):
        asked = getattr(options, suite)
        setattr(options, suite, list(names) if is_all or asked == [] else asked or [])
    return options


if __name__ == "__main__":
    sys.exit(main())
