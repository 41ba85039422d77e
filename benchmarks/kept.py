"""What the benchmarks that resume have measured so far: `python -m benchmarks.kept > budget.md`.

Nothing is measured here. Cases that are missing are counted, and never filled in.
"""

from __future__ import annotations

import json
from itertools import product

import numpy as np

from benchmarks import budget, calibration, environment, regret
from benchmarks.report import Result, Row, Target, document
from benchmarks.resumable import KEPT


def results() -> dict[str, Result]:
    """Return the tables of all that was kept."""
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    entries = [json.loads(line) for line in lines]
    found = {json.dumps(entry["case"], ensure_ascii=False): entry["result"] for entry in entries}
    tables = {"budget": _budget(found), "regret": _regret(found), "calibration": _verdicts(found)}
    return {name: table for name, table in tables.items() if table.rows}


def _kept(found: Row, module: str, *case: object) -> Row | None:
    key = json.dumps([f"benchmarks.{module}", *case], ensure_ascii=False)
    return found.get(key)


def _budget(found: Row) -> Result:
    cases = list(product(budget.DIMENSIONS, budget.KERNELS, budget.CONTEXTS))
    sizes = budget.ROUNDS, budget.MANY
    rows = [
        {"case": f"{name}, D = {D}, {contexts}"} | kept
        for D, name, contexts in cases
        if (kept := _kept(found, "budget", "cost", D, name, contexts, *sizes))
    ]
    targets = [
        Target(f"worst {column}", limit, max(row[column] for row in rows), at_most=True)
        for column, limit in budget.LIMITS.items()
        if rows
    ]
    notes = f"{len(rows)} of {len(cases)} cases were measured. {budget.NOTES}"
    return Result("Budget: every kernel and dimension", rows, targets, notes)


def _regret(found: Row) -> Result:
    few, many, rows = regret.EXACT_ROUNDS, regret.ROUNDS, []
    for name in regret.SAMPLED:
        ours, exact, long = [], [], []
        for seed in range(regret.FIRST_SEED, regret.FIRST_SEED + regret.SEEDS):
            case = "regret", "regret", name, "dictionary", seed
            whole = _kept(found, *case, many)
            played = whole or _kept(found, *case, few)
            judged = _kept(found, "regret", "regret", name, "exact", seed, few)
            if whole:
                long.append(np.reshape(whole["blocks"], (4, -1)).mean(axis=1) / regret.BLOCK)
            if played and judged:
                ours.append(sum(played["blocks"][: few // regret.BLOCK]))
                exact.append(sum(judged["blocks"]))
        if ours:
            error = regret.error(np.subtract(ours, exact)) / np.mean(exact)
            quarters = np.mean(long, axis=0) if long else []
            rows.append(
                {
                    "case": name,
                    "seeds": len(ours),
                    "exact's regret": float(np.mean(exact)),
                    "over exact's": float(np.mean(ours) / np.mean(exact)),
                    "±": float(error),
                    "seeds of 2,000 rounds": len(long),
                    "per round, by quarters": " ".join(f"{q:.3f}" for q in quarters),
                }
            )
    return Result("Regret within the budget", rows, notes=regret.NOTES)


def _verdicts(found: Row) -> Result:
    cases = [(name, 0, "uniform", calibration.MORE_ROUNDS) for name in regret.SAMPLED]
    cases += [
        (*case, calibration.ROUNDS)
        for case in product(budget.KERNELS, budget.DIMENSIONS, budget.CONTEXTS)
    ]
    rows = [
        {"case": f"{name}, D = {D}, {contexts}" if D else name, "rounds": rounds} | kept
        for name, D, contexts, rounds in cases
        if (
            kept := _kept(
                found, "calibration", "verdicts", name, D, contexts, calibration.SEEDS, rounds
            )
        )
    ]
    notes = f"{len(rows)} of {len(cases)} cases were measured."
    return Result("Calibration within the budget", rows, notes=notes)


if __name__ == "__main__":
    print(document(environment.describe(), results()))
