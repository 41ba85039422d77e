"""The labels of the paper's policies, as tables, figures and claims spell them.

Experiments give them to policies; styles and claims look policies up by them.
"""
# Tested in tests/bench/report/test_claims.py: names alone, looked up by claims.

from __future__ import annotations

OCLOK = "O'CLOK-UCB"
ACC = "ACC-UCB"
CC = "CC-MAB"
RANDOM = "Random"


def soclok(inducing: int) -> str:
    """Return the label of SO'CLOK-UCB with this many inducing points."""
    return f"S{OCLOK} {inducing}"
