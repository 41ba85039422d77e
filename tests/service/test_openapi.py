"""Whatever a client makes of the OpenAPI description is answered as described."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable

from oclok.agent.schema import KINDS
from oclok.oracles.arguments import oracle_kinds, parameters_of
from oclok.service import openapi

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
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


#: Names that generated clients have for the calls: they never change.
OPERATIONS = {
    "put_agent",
    "get_agent",
    "get_agents",
    "post_decision",
    "get_decisions",
    "get_decision",
    "post_outcomes",
    "post_observations",
    "get_history",
    "get_features",
    "get_me",
    "get_server",
    "healthz",
    "readyz",
    "get_metrics",
}


def described(server) -> list[tuple[str, dict]]:
    """Return every call of the description: its method and path, and what is said of it."""
    paths = server.client.get("/openapi.json").json()["paths"]
    return [(f"{m.upper()} {path}", call) for path, ms in paths.items() for m, call in ms.items()]


def test_calls_have_stable_names_tags_and_words(server):
    calls = described(server)
    assert {call["operationId"] for _, call in calls} >= OPERATIONS
    for name, call in calls:
        assert len(call["tags"]) == 1, name
        assert call["description"], name


def test_what_is_sent_and_answered_has_an_example_that_fits(server):
    description = server.client.get("/openapi.json").json()
    schemas = description["components"]["schemas"]
    root = {"$defs": schemas, "components": {"schemas": schemas}}
    for name, schema in schemas.items():
        assert schema["examples"], name
        for example in schema["examples"]:
            jsonschema.validate(example, {**root, "$ref": f"#/components/schemas/{name}"})
    for name, call in described(server):
        bodies = [call["requestBody"]] if "requestBody" in call else []
        bodies += [answer for status, answer in call["responses"].items() if int(status) < 300]
        for body in bodies:
            schema = body.get("content", {}).get("application/json", {}).get("schema", {})
            assert "$ref" in schema.get("items", schema) or not schema, name


def test_forms_have_the_fields_that_oracles_and_features_have():
    for name, oracle in oracle_kinds().items():
        fields = set(openapi.FORMS[name].model_fields)
        assert fields == {"kind", *parameters_of(oracle)}, name
    used = {name for oracle in oracle_kinds().values() for name in parameters_of(oracle)}
    assert set(openapi.ARGUMENTS) == used
    assert set(openapi.FeatureKind.__args__) == set(KINDS)
    known = {field for kind in KINDS.values() for field in kind.__dataclass_fields__}
    assert set(openapi.FeatureForm.model_fields) == {"kind", *known}


def test_a_typed_client_runs_in_node(server, tmp_path):
    tests = Path(__file__).parents[1]
    tools = tests / "node_modules" / ".bin"
    node = shutil.which("node")
    if node is None or not (tools / "tsc").exists():
        pytest.skip("no Node with openapi-typescript: npm --prefix tests install")
    (tmp_path / "openapi.json").write_text(server.client.get("/openapi.json").text)
    run([tools / "openapi-typescript", tmp_path / "openapi.json", "-o", tmp_path / "api.ts"])
    types = (tmp_path / "api.ts").read_text("utf-8")
    vague = [line.strip() for line in types.splitlines() if "unknown" in line]
    assert set(vague) <= {"[name: string]: unknown;"}  # further headers of answers
    shutil.copy(tests / "service" / "client.ts", tmp_path)
    strict = "--strict --target es2022 --module es2022 --moduleResolution bundler --lib es2022,dom"
    run([tools / "tsc", *strict.split(), tmp_path / "client.ts"])
    (tmp_path / "package.json").write_text('{"type": "module"}')
    said = json.loads(run([node, tmp_path / "client.js", server.url]))
    assert said == {"level": "grey", "count": "number", "limits": "5", "rounds": 3}


def run(command: list) -> str:
    """Run a command and return what it printed."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
