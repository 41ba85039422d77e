"""Whatever a client makes of the OpenAPI description is answered as described."""

from __future__ import annotations

import contextlib
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")

#: Not whether all that fits the schema is accepted: arms must fit the agent, too.
DESCRIBED = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


#: Requests per call and kind.
EXAMPLES = int(os.environ.get("OCLOK_EXAMPLES", "8"))


def test_the_description_is_kept(server, make_arms):
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    server.client.put("/v1/agents/a", json={"oracle": {"kind": "TopK", "k": 1}})
    body = {"arms": make_arms(np.random.default_rng(0)), "id": "d"}
    server.client.post("/v1/agents/a/decisions", json=body)
    seen: dict[str, set[int]] = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        for mode in schemathesis.GenerationMode:
            with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with a call as such
                statuses = seen.setdefault(operation.label, set())
                check_operation(server.url, operation.as_strategy(mode), statuses)
    assert len(seen) >= 10
    assert all(seen.values())


def check_operation(url, strategy, statuses):
    """Check answers to requests that the description allows, or to some that it does not."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, agent=st.booleans(), decision=st.booleans())
    def check(case, agent, decision):
        if "agent" in case.path_parameters and agent:
            case.path_parameters["agent"] = "a"
        if "decision" in case.path_parameters and decision:
            case.path_parameters["decision"] = "d"
        answer = case.call(base_url=url)
        case.validate_response(answer, checks=DESCRIBED)
        assert answer.status_code < 500
        statuses.add(answer.status_code)

    check()
