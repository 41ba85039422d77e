"""Conformance suites: run them over your own posteriors, policies and oracles.

Each takes a function that makes a new object and raises an `AssertionError` that says what is
wrong with it. They need no test framework.
"""

from oclok.testing.oracles import check_oracle
from oclok.testing.policies import check_policy
from oclok.testing.posteriors import check_posterior

__all__ = ["check_oracle", "check_policy", "check_posterior"]
