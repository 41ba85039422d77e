"""Metrics that can be alerted on, and files to run the service with."""

from __future__ import annotations

import re
from pathlib import Path

from oclok.service.metrics import GAUGES

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_every_agent_has_every_gauge(server, agent, make_arms):
    import numpy as np

    body = {"arms": make_arms(np.random.default_rng(0)), "id": "d"}
    chosen = server.client.post(f"{agent}/decisions", json=body).json()["chosen"]
    item = {"decision": "d", "arm": chosen[0]["id"], "outcome": 2.0}
    server.client.post(f"{agent}/outcomes", json=[item])
    text = server.client.get("/metrics").text
    name = agent.rsplit("/", 1)[-1]
    for gauge in GAUGES:
        assert f'oclok_{gauge}{{agent="{name}"}} ' in text
    assert f'oclok_mean_outcome{{agent="{name}"}} 2.0' in text
    assert "oclok_damaged_agents 0" in text


def test_alerts_name_metrics_that_exist(server):
    text = server.client.get("/metrics").text
    rules = (DEPLOY / "alerts.yaml").read_text()
    named = set(re.findall(r"oclok_[a-z_]+", rules))
    assert named
    for name in named:
        assert f"\n{name}" in text or f"# TYPE {name}" in text, name


def test_the_image_runs_as_an_ordinary_user_and_gets_signals():
    recipe = (DEPLOY / "Dockerfile").read_text()
    assert "USER oclok" in recipe
    assert 'ENTRYPOINT ["oclok"]' in recipe
    assert "HEALTHCHECK" in recipe
    from oclok.service.config import Config

    known = {f"OCLOK_{name.upper()}" for name in Config.__dataclass_fields__}
    for file in ("Dockerfile", "compose.yaml", "oclok.service"):
        used = set(re.findall(r"\bOCLOK_[A-Z_]+", (DEPLOY / file).read_text()))
        assert used
        assert used <= known, file
