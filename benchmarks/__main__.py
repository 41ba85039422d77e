"""Run the benchmarks: `python -m benchmarks [--quick] [--only NAME …] [--check]`."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks import environment, report

NAMES = (
    "simulation",
    "growth",
    "budget",
    "regret",
    "calibration",
    "saving",
    "busy",
    "floor",
    "arms",
    "oracles",
    "baselines",
    "certificate",
    "left",
    "rough",
    "mixture",
    "offline",
    "agent",
    "guard",
    "bands",
    "drift",
    "service",
    "pairs",
    "stages",
)


def main() -> int:
    """Run what was asked for and return the exit code."""
    options = _options()
    environment.make_fair()
    seen = environment.describe()
    if options.quick:
        seen["sizes"] = "quick: to see that it runs, the targets are for full sizes"
    results: dict[str, report.Result] = {}
    for name in options.only or NAMES:
        report.say(f"{name}: start")
        results[name] = importlib.import_module(f"benchmarks.{name}").run(options.quick)
    seen["threads of peers"] = environment.peer_threads()
    print(report.document(seen, results))
    folder = options.output
    if folder is None and not (options.quick or options.only):
        folder = Path(__file__).parent
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        report.write(folder, seen, results)
        if "simulation" in results:
            from benchmarks.plot import draw

            draw(results["simulation"], folder)
        report.say(f"written to {folder}")
    missed = [t for result in results.values() for t in result.targets if not t.holds]
    return int(options.check and bool(missed))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help="only these")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument(
        "--output",
        type=Path,
        help="folder for results.md, .json, .png and .svg; by default this one, "
        "and none for a quick or partial run",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
