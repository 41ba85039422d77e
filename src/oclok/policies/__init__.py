"""Policies: posterior → index → oracle → super arm. One policy a file."""

from __future__ import annotations

from oclok.policies.acc_ucb import ACCUCB
from oclok.policies.base import Belief, Policy
from oclok.policies.cc_mab import CCMAB
from oclok.policies.cucb import CUCB
from oclok.policies.gp import GPPolicy
from oclok.policies.oclok import OClokUCB
from oclok.policies.random import Random

__all__ = ["ACCUCB", "CCMAB", "CUCB", "Belief", "GPPolicy", "OClokUCB", "Policy", "Random"]
