"""Policies: posterior → index → oracle → super arm. One policy a file."""

from __future__ import annotations

from oclok.policies.acc_ucb import ACCUCB
from oclok.policies.base import Belief, Played, Policy, Proposal
from oclok.policies.bayes_ucb import BayesUCB
from oclok.policies.epsilon_greedy import EpsilonGreedy
from oclok.policies.gp import Discount, GPPolicy, Window
from oclok.policies.grid import CCMAB, CUCB
from oclok.policies.linear import C2UCB, LinearThompson
from oclok.policies.neural_linear import NeuralLinear
from oclok.policies.oclok import OClokUCB
from oclok.policies.random import Random
from oclok.policies.tcgp_ucb import TCGPUCB
from oclok.policies.thompson import ThompsonSampling
from oclok.policies.ucb import UCB, UCBPolicy

__all__ = [
    "ACCUCB",
    "C2UCB",
    "CCMAB",
    "CUCB",
    "TCGPUCB",
    "UCB",
    "BayesUCB",
    "Belief",
    "Discount",
    "EpsilonGreedy",
    "GPPolicy",
    "LinearThompson",
    "NeuralLinear",
    "OClokUCB",
    "Played",
    "Policy",
    "Proposal",
    "Random",
    "ThompsonSampling",
    "UCBPolicy",
    "Window",
]
