from __future__ import annotations

import copy
import subprocess
import sys
import textwrap
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.bench import Channels
from oclok.bench.experiments import EXPERIMENTS
from oclok.bench.experiments.digest import digest
from oclok.bench.simulation import simulate
from oclok.policies import OClokUCB, Random
from oclok.posterior import DictionaryPosterior

VALUES = [
    *(0, 0.0, False, None, "", (), [], {}, b"", 1, 1.5, "a", (1,), [1], {"a": 1}, {1}),
    *(np.zeros(3), np.zeros(4), np.zeros((3, 1)), np.zeros(3, int), np.float64(1.5)),
    *(RBF(1.0), RBF(1.0 + 1e-9), RBF(1.0) * RBF(1.0), np.random.SeedSequence(1)),
    *(np.random.SeedSequence(2), np.random.default_rng(0), np.random.default_rng(1)),
    *(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), pd.DataFrame({"a": [2]})),
    *(len, sum, Random, OClokUCB, partial(int, base=2), partial(int, base=3)),
]


def test_different_values_have_different_digests_and_equal_ones_the_same():
    digests = [digest(value) for value in VALUES]
    assert len(set(digests)) == len(VALUES)
    assert [digest(value) for value in VALUES] == digests


def defined(source: str, name: str = "f"):
    """Return what `source` defines, as if it stood in a user's file."""
    namespace = {"__name__": "mine"}
    exec(compile(textwrap.dedent(source), "mine.py", "exec"), namespace)
    return namespace[name]


BASE = """
    import math
    LIMIT = 3
    def helper(x):
        return math.sqrt(x)
    class Base:
        width = 1
        def act(self):
            return helper(self.width)
    class Mine(Base):
        def go(self):
            return [self.act() for _ in range(LIMIT)]
    class Other(Base):
        def go(self):
            return None
    def f(problem, seed):
        return Mine()
    def g(problem, seed):
        return Other()
"""


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("LIMIT = 3", "LIMIT = 4", "f"),
        ("math.sqrt(x)", "math.sqrt(x + 1)", "fg"),
        ("width = 1", "width = 2", "fg"),
        ("return [self.act()", "return [1 + self.act()", "f"),
        ("return None", "return 0", "g"),
        ("class Mine(Base)", "class Mine", "f"),
        ("def go(self):\n            return None", "def went(self):\n            return None", "g"),
        ("import math", "import math  # a comment", ""),
        ("def helper(x):", "def helper(x):\n        'A docstring.'", ""),
        ("LIMIT = 3", "\n\n    LIMIT = 3\n    UNUSED = 5", ""),
    ],
)
def test_a_changed_line_changes_exactly_what_depends_on_it(old, new, changes):
    source = textwrap.dedent(BASE)
    changed = textwrap.dedent(BASE.replace(old, new))
    assert changed != source
    for name in "fg":
        same = digest(defined(source, name)) == digest(defined(changed, name))
        assert same == (name not in changes)


def test_closures_and_defaults_count():
    def make(width):
        return lambda problem, seed: width

    assert digest(make(1)) != digest(make(2))
    assert digest(make(1)) == digest(make(1))
    assert digest(lambda x=1: x) != digest(lambda x=2: x)


def test_the_wrapped_function_counts():
    one = defined("from functools import cache\n@cache\ndef f(x):\n    return 1")
    other = defined("from functools import cache\n@cache\ndef f(x):\n    return 2")
    assert digest(one) != digest(other)
    assert digest(cache(len)) == digest(cache(len))


def test_values_that_hold_themselves_are_no_trouble():
    thing = SimpleNamespace(value=1)
    thing.self = thing
    assert digest(thing) == digest(thing)


def test_a_policy_depends_on_its_posterior_and_one_without_does_not(monkeypatch):
    gp, random = digest(OClokUCB), digest(Random)
    monkeypatch.setattr(DictionaryPosterior, "predict", lambda self, contexts: None)
    assert digest(OClokUCB) != gp
    assert digest(Random) == random


def test_playing_changes_no_digest():
    before = digest(OClokUCB, Channels)
    simulate(copy.deepcopy(OClokUCB(RBF(1.0), 0.1)), Channels(rounds=3), seed=0)
    assert digest(OClokUCB, Channels) == before


def test_digests_are_the_same_in_another_process():
    code = (
        "from oclok.bench.experiments import EXPERIMENTS as E; e = E['channels']; "
        "print(','.join(run.identity for run in e.runs(e.settings(repeats=1))))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    channels = EXPERIMENTS["channels"]
    runs = channels.runs(channels.settings(repeats=1))
    assert out.stdout.strip() == ",".join(run.identity for run in runs)
