"""Lets tests import `oracle_instances`, and says how many adversarial instances they draw."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def adversarial_draws() -> int:
    """Instances to draw per oracle; `OCLOK_DRAWS=5000 pytest …` draws more than the default."""
    return int(os.environ.get("OCLOK_DRAWS", "300"))
