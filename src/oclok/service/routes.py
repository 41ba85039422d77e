"""The calls of the HTTP interface, version 1."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Body, Header, Path, Query, Request, Response

from oclok import __version__
from oclok.service import answers, learned, requests, views
from oclok.service.access import ROLES, Access, digest
from oclok.service.background import Background
from oclok.service.decisions import RESULTS
from oclok.service.history import Range, history
from oclok.service.lifecycle import Lifecycle
from oclok.service.metrics import Metrics
from oclok.service.personalizer import add_routes
from oclok.service.problems import problem
from oclok.service.replica import Replica
from oclok.service.requests import AgentName, DecisionId
from oclok.service.router import KEY, Router, answered, authorization, problems
from oclok.service.service import Service

AGENT = "/v1/agents/{agent}"
Level = Annotated[float, Query(gt=0, lt=1, description="Probability of the intervals.")]
Once = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=256, description="Same key: once."),
]
AgentPath = Annotated[AgentName, Path(description="The name of the agent.")]


def routes(service: Service, access: Access, metrics: Metrics, background: Background) -> Router:
    """Return the routes of the API."""
    router = Router(access, service.knows)
    call, view = router.call, router.view

    def decide(agent: str, request: requests.DecisionRequest) -> dict[str, Any]:
        answer = service.decide(agent, vars(request))
        metrics.decided(agent)
        return answer

    def learn(agent: str, items: list[requests.OutcomeItem]) -> dict[str, Any]:
        answer = service.learn(agent, [vars(item) for item in items])
        for result in RESULTS:
            metrics.told(agent, result, answer[result])
        metrics.told(agent, "rejected", len(answer["rejected"]))
        return answer

    def lifecycle(request: Request) -> Lifecycle:
        key = access.key_of(authorization(request))
        return Lifecycle(service.log, "anyone" if key is None else key.name)

    def seen(
        request: Request,
        agent: str,
        make: Callable[[Replica], Any],
        version: Callable[[Replica], str] = views.version,
    ) -> Response:
        """Return a view of an agent."""
        replica = service.replica(agent)
        return answered(request, version(replica), lambda: make(replica))

    there: Any = {
        200: {"model": answers.AgentAnswer, "description": "It is there, with the same settings."}
    }

    @call("PUT", AGENT, "admin", status_code=201, responses=there)
    def put_agent(
        agent: AgentPath, settings: requests.Settings, request: Request, response: Response
    ) -> answers.AgentAnswer:
        """Make an agent."""
        if service.put_agent(agent, settings.model_dump()):
            lifecycle(request).note(agent, "create", {})
        else:
            response.status_code = 200
        return views.agent(service.replica(agent))

    @view("/v1/agents", list[answers.AgentRow])
    def get_agents(
        request: Request,
        after: Annotated[str, Query(max_length=64, description="A name.")] = "",
        most: Annotated[int, Query(ge=1, le=1000)] = 200,
        archived: Annotated[bool, Query(description="Those that are archived.")] = False,
    ) -> Response:
        """List agents whose names come after `after`, by name; `Link` has the next page."""
        service.refresh()
        rows = service.log.agents(after, most)
        replicas = {replica.id: replica for replica in service.replicas}
        shown = [
            (views.version(replicas[row.id]), partial(views.row, replicas[row.id]))
            if row.id in replicas
            else (f"{row.id}-{row.last}-{row.state}", partial(views.stored, row))
            for row in rows
            if (row.state == "archived") == archived
        ]
        version = " ".join(each for each, _ in shown)
        answer = answered(request, version, lambda: [make() for _, make in shown])
        if len(rows) == most:
            query = urlencode({"after": rows[-1].name, "most": most, "archived": archived})
            answer.headers["Link"] = f'</v1/agents?{query}>; rel="next"'
        return answer

    @view(AGENT, answers.AgentAnswer)
    def get_agent(agent: AgentPath, request: Request) -> Response:
        """Return settings, counts, verdict, calibration and findings of an agent."""
        return seen(request, agent, views.agent)

    @call("PATCH", AGENT, "admin")
    def patch_agent(
        agent: AgentPath, change: requests.SettingsChange, request: Request
    ) -> answers.AgentAnswer:
        """Change settings or the state (active, paused, archived); others stay as they are."""
        lifecycle(request).change(agent, change.model_dump(include=change.model_fields_set))
        return views.agent(service.read_changes(agent))

    @call("DELETE", AGENT, "admin", status_code=204)
    def delete_agent(agent: AgentPath, request: Request) -> None:
        """Delete an agent and everything that is known of it, for good."""
        lifecycle(request).delete(agent)
        service.refresh()

    @call("POST", f"{AGENT}/reset", "admin")
    def post_reset(agent: AgentPath, request: Request) -> answers.AgentAnswer:
        """Forget everything that was learned; settings stay."""
        lifecycle(request).reset(agent)
        return views.agent(service.read_changes(agent))

    @call("POST", f"{AGENT}/clone", "admin", status_code=201)
    def post_clone(agent: AgentPath, clone: requests.Clone, request: Request) -> answers.AgentRow:
        """Make another agent with the same settings, with or without the log."""
        access.check(authorization(request), "admin", clone.name)
        lifecycle(request).clone(agent, clone.name, clone.learned)
        return views.stored(service.log.agent(clone.name))  # building its model can take a minute

    @call("POST", f"{AGENT}/erase", "admin")
    def post_erase(agent: AgentPath, erasure: requests.Erasure, request: Request) -> answers.Erased:
        """Erase all that is known of an arm or a decision, from the log and from the model."""
        events = lifecycle(request).erase(agent, erasure.arm, erasure.decision)
        service.read_changes(agent)
        return answers.Erased(events=events)

    trail: Any = {"response_model": list[answers.AuditEntry], "response_model_exclude_unset": True}

    @call("GET", "/v1/audit", "admin", "service", **trail)
    def get_audit(
        name: Annotated[AgentName | None, Query(description="Of this agent only.")] = None,
        before: Annotated[int, Query(ge=1, le=2**53, description="An id.")] = 2**53,
        most: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> Any:
        """List who did what to which agent, latest first."""
        return Lifecycle(service.log, "").trail(name, before, most)

    made: Any = {"status_code": 201, "response_model": answers.DecisionAnswer}
    made["quick"] = requests.DecisionRequest

    @call("POST", f"{AGENT}/decisions", "decide", "decisions", **made)
    def post_decision(agent: AgentPath, request: requests.DecisionRequest, key: Once = None) -> Any:
        """Decide among arms; the same `id` again gives the same answer.

        An `Idempotency-Key` stands in for an id that was left out.
        """
        if key is not None and request.id is None:
            request.id = digest(key)
        return decide(agent, request)

    @call("POST", f"{AGENT}/decisions/batch", "decide", "decisions", status_code=201)
    def post_decisions(agent: AgentPath, batch: requests.DecisionBatch) -> answers.BatchAnswer:
        """Decide several times in one call, with one commit: all decisions are made, or none."""
        each = service.decide_batch(agent, list(map(vars, batch.decisions)))
        metrics.decided(agent, len(each))
        return answers.BatchAnswer(decisions=each)  # type: ignore[arg-type]

    @view(f"{AGENT}/decisions", list[answers.DecisionRow], "decisions")
    def get_decisions(
        agent: AgentPath,
        request: Request,
        before: Annotated[int, Query(ge=1, le=2**53, description="A round.")] = 2**53,
        most: Annotated[int, Query(ge=1, le=500)] = 50,
        status: Annotated[answers.Status | None, Query(description="That an outcome has.")] = None,
        search: Annotated[DecisionId | None, Query(description="What ids begin with.")] = None,
    ) -> Response:
        """List decisions of rounds below `before`, latest first."""
        return seen(
            request,
            agent,
            lambda replica: views.decisions(service, replica, before, most, status, search),
        )

    @call("GET", f"{AGENT}/decisions/{{decision}}", "read", "decisions")
    def get_decision(agent: AgentPath, decision: DecisionId) -> answers.DecisionDetails:
        """Return a decision, its outcomes so far, and why it came out as it did."""
        return views.decision(service, service.replica(agent), decision)

    told: Any = {"response_model": answers.OutcomesAnswer, "quick": requests.OutcomeItems}

    @call("POST", f"{AGENT}/outcomes", "learn", "outcomes", **told)
    def post_outcomes(agent: AgentPath, items: Annotated[requests.OutcomeItems, Body()]) -> Any:
        """Learn outcomes of chosen arms, each once."""
        return learn(agent, items)

    @call("POST", f"{AGENT}/observations", "learn", "outcomes")
    def post_observations(
        agent: AgentPath, items: Annotated[requests.Observations, Body()], key: Once = None
    ) -> answers.ObservationsAnswer:
        """Learn outcomes of the past; all of them, or none, and once per `Idempotency-Key`."""
        once = None if key is None else f"#{digest(key)}"
        count = service.observe(agent, list(map(vars, items)), once)
        return answers.ObservationsAnswer(learned=count)

    @view(f"{AGENT}/history", answers.History)
    def get_history(agent: AgentPath, request: Request, range: Range = "day") -> Response:  # noqa: A002
        """Return decisions and outcomes over time, beside the expectations of that time."""
        return seen(request, agent, lambda replica: history(replica, range, time.time()))

    @view(f"{AGENT}/features", answers.Learned)
    def get_features(agent: AgentPath, request: Request) -> Response:
        """Return which features matter, and how outcomes depend on them; recomputed seldom."""
        return seen(
            request,
            agent,
            lambda replica: learned.learned(service, replica),
            lambda replica: f"{replica.id}-{learned.version(replica)}",
        )

    @view(f"{AGENT}/lift", answers.Lift)
    def get_lift(agent: AgentPath, request: Request, level: Level = 0.95) -> Response:
        """Return what the agent earns per decision beyond the control group, and the guard."""
        return seen(request, agent, lambda replica: views.lift(replica, level))

    @view(f"{AGENT}/comparison", answers.Comparison)
    def get_comparison(agent: AgentPath, request: Request, level: Level = 0.95) -> Response:
        """Return, for shadow mode, what the agent expects to gain over the deciding system."""
        return seen(request, agent, lambda replica: views.comparison(replica, level))

    add_routes(router, service, decide, learn)

    @router.get("/v1/me", tags=["service"], responses=problems(401, 403), dependencies=[KEY])
    def get_me(request: Request) -> answers.Me:
        """Return what the key of this request may do; without keys, everything."""
        key = access.key_of(authorization(request))
        if key is None:
            return answers.Me(roles=list(ROLES), agent=None)
        return answers.Me(roles=sorted(key.roles), agent=key.agent)

    @call("GET", "/v1/server", "read", "service")
    def get_server() -> answers.Server:
        """Return the version, and how long calls of the process that answers take."""
        calls = [{"call": name, **seen} for name, seen in metrics.speed().items()]
        return answers.Server(version=__version__, calls=calls)  # type: ignore[arg-type]

    @router.get("/healthz", tags=["service"])
    async def healthz() -> answers.Alive:
        """Say that the process is alive."""
        return answers.Alive(status="alive")

    @router.get("/readyz", tags=["service"], responses=problems(503), response_model=answers.Alive)
    def readyz() -> Any:
        """Say whether the database can be read and written, and all logs are complete."""
        if not background.is_ready:
            return problem(503, "the database cannot be reached, or has not been checked yet")
        if service.damaged:
            return problem(503, "; ".join(service.damaged.values()))
        service.database.probe()
        return {"status": "ready"}

    text: Any = {200: {"content": {"text/plain": {}}}}

    @call("GET", "/metrics", "read", "service", responses=text, response_class=Response)
    def get_metrics() -> Response:
        """Return numbers for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router
