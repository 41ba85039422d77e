"""The calls of the HTTP interface, version 1."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Coroutine
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Body, Depends, Header, Path, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from oclok import __version__
from oclok.service import learned, views
from oclok.service.access import ROLES, Access
from oclok.service.answers import (
    AgentAnswer,
    AgentRow,
    Alive,
    AuditEntry,
    BatchAnswer,
    Comparison,
    DecisionAnswer,
    DecisionDetails,
    DecisionRow,
    Erased,
    History,
    Learned,
    Lift,
    Me,
    ObservationsAnswer,
    OutcomesAnswer,
    Problem,
    Server,
    Status,
)
from oclok.service.background import Background
from oclok.service.conditional import answered
from oclok.service.history import Range, history
from oclok.service.lifecycle import Lifecycle
from oclok.service.metrics import Metrics
from oclok.service.personalizer import add_routes
from oclok.service.problems import problem
from oclok.service.quick import Quick, QuickRoute, quickly, read_decision, read_outcomes
from oclok.service.requests import (
    AgentName,
    Clone,
    DecisionBatch,
    DecisionId,
    DecisionRequest,
    Erasure,
    Observations,
    OutcomeItems,
    Settings,
    SettingsChange,
)
from oclok.service.service import Service

UNCHANGED: dict[int | str, dict[str, Any]] = {
    304: {"description": "As in the answer whose ETag is in If-None-Match."}
}
PROBLEM = {"model": Problem, "content": {"application/problem+json": {}}}
REASONS = {
    400: "The body is not JSON.",
    401: "There is no key, or it is not known.",
    403: "The key may not do this.",
    404: "There is no such agent or decision.",
    409: "There is something else under this name, or the agent is paused or archived.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "Something in the request is wrong; the detail says what.",
    503: "The database cannot be reached, or too much is under way; try again.",
}

Level = Annotated[float, Query(gt=0, lt=1, description="Probability of the intervals.")]
Once = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=256, description="Same key: once."),
]
AgentPath = Annotated[AgentName, Path(description="The name of the agent.")]
Bearer = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, description="A key"))
]


def needs(role: str) -> Any:
    """Return the dependency of a route that needs a key with a role; `CheckedRoute` checks it."""

    def described(bearer: Bearer) -> None:
        """Describe the key in the OpenAPI page."""

    described.role = role  # type: ignore[attr-defined]
    return Depends(described)


def routes(service: Service, access: Access, metrics: Metrics, background: Background) -> APIRouter:
    """Return the routes of the API."""

    class CheckedRoute(QuickRoute):
        """A route that checks the key before the body is read."""

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()
            roles = [str(getattr(each.dependency, "role", "")) for each in self.dependencies]

            async def checked(request: Request) -> Response:
                for role in roles:
                    agent = request.path_params.get("agent")
                    access.check(_authorization(request), role, agent)
                return await handle(request)

            return checked

    router = APIRouter(route_class=CheckedRoute)

    def decide(agent: str, request: dict[str, Any]) -> dict[str, Any]:
        answer = service.decide(agent, request)
        metrics.decided(agent)
        return answer

    def learn(agent: str, items: list[dict[str, Any]]) -> dict[str, Any]:
        answer = service.learn(agent, items)
        for result in ("learned", "repeated", "corrected", "quarantined"):
            metrics.told(agent, result, answer[result])
        metrics.told(agent, "rejected", len(answer["rejected"]))
        return answer

    @router.put(
        "/v1/agents/{agent}",
        status_code=201,
        tags=["agents"],
        dependencies=[needs("admin")],
        responses=_problems(400, 401, 403, 408, 409, 413, 415, 422, 503)
        | {200: {"model": AgentAnswer, "description": "It is there, with the same settings."}},
    )
    def put_agent(
        agent: AgentPath, settings: Settings, request: Request, response: Response
    ) -> AgentAnswer:
        """Make an agent."""
        if service.put_agent(agent, settings.model_dump()):
            Lifecycle(service.log, who(request)).note(agent, "create", {})
        else:
            response.status_code = 200
        return views.agent(service.replica(agent))

    @router.get(
        "/v1/agents",
        dependencies=[needs("read")],
        tags=["agents"],
        responses=_problems(401, 403, 503) | UNCHANGED,
        response_model=list[AgentRow],
    )
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
        shown = [row for row in rows if (row.state == "archived") == archived]
        version = " ".join(
            views.version(replicas[row.id]) if row.id in replicas else f"{row.id}-{row.last}"
            for row in shown
        )
        answer = answered(
            request,
            f"{version} {[row.state for row in shown]}",
            lambda: [
                views.row(replicas[row.id]) if row.id in replicas else views.stored(row)
                for row in shown
            ],
        )
        if len(rows) == most:
            query = urlencode({"after": rows[-1].name, "most": most, "archived": archived})
            answer.headers["Link"] = f'</v1/agents?{query}>; rel="next"'
        return answer

    @router.get(
        "/v1/agents/{agent}",
        dependencies=[needs("read")],
        tags=["agents"],
        responses=_problems(401, 403, 404, 422, 503) | UNCHANGED,
        response_model=AgentAnswer,
    )
    def get_agent(agent: AgentPath, request: Request) -> Response:
        """Return settings, counts, verdict, calibration and findings of an agent."""
        replica = service.replica(agent)
        return answered(request, views.version(replica), lambda: views.agent(replica))

    def who(request: Request) -> str:
        key = access.key_of(request.headers.get("authorization"))
        return "anyone" if key is None else key.name

    @router.patch(
        "/v1/agents/{agent}",
        tags=["agents"],
        dependencies=[needs("admin")],
        responses=_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 503),
    )
    def patch_agent(agent: AgentPath, change: SettingsChange, request: Request) -> AgentAnswer:
        """Change settings or the state (active, paused, archived); others stay as they are."""
        changes = change.model_dump(include=change.model_fields_set)
        Lifecycle(service.log, who(request)).change(agent, changes)
        return views.agent(service.read_changes(agent))

    @router.delete(
        "/v1/agents/{agent}",
        status_code=204,
        tags=["agents"],
        dependencies=[needs("admin")],
        responses=_problems(401, 403, 404, 422, 503),
    )
    def delete_agent(agent: AgentPath, request: Request) -> None:
        """Delete an agent and everything that is known of it, for good."""
        Lifecycle(service.log, who(request)).delete(agent)
        service.refresh()

    @router.post(
        "/v1/agents/{agent}/reset",
        tags=["agents"],
        dependencies=[needs("admin")],
        responses=_problems(400, 401, 403, 404, 408, 413, 415, 422, 503),
    )
    def post_reset(agent: AgentPath, request: Request) -> AgentAnswer:
        """Forget everything that was learned; settings stay."""
        Lifecycle(service.log, who(request)).reset(agent)
        return views.agent(service.read_changes(agent))

    @router.post(
        "/v1/agents/{agent}/clone",
        status_code=201,
        tags=["agents"],
        dependencies=[needs("admin")],
        responses=_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 503),
    )
    def post_clone(agent: AgentPath, clone: Clone, request: Request) -> AgentAnswer:
        """Make another agent with the same settings, with or without what was learned."""
        access.check(request.headers.get("authorization"), "admin", clone.name)
        Lifecycle(service.log, who(request)).clone(agent, clone.name, clone.learned)
        return views.agent(service.replica(clone.name))

    @router.post(
        "/v1/agents/{agent}/erase",
        tags=["agents"],
        dependencies=[needs("admin")],
        responses=_problems(400, 401, 403, 404, 408, 413, 415, 422, 503),
    )
    def post_erase(agent: AgentPath, erasure: Erasure, request: Request) -> Erased:
        """Erase all that is known of an arm or a decision, from the log and from the model."""
        lifecycle = Lifecycle(service.log, who(request))
        events = lifecycle.erase(agent, erasure.arm, erasure.decision)
        service.read_changes(agent)
        return Erased(events=events)

    @router.get(
        "/v1/audit",
        tags=["service"],
        dependencies=[needs("admin")],
        responses=_problems(401, 403, 422, 503),
    )
    def get_audit(
        name: Annotated[AgentName | None, Query(description="Of this agent only.")] = None,
        before: Annotated[int, Query(ge=1, le=2**53, description="An id.")] = 2**53,
        most: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> list[AuditEntry]:
        """List who did what to which agent, latest first."""
        return [AuditEntry(**row) for row in Lifecycle(service.log, "").trail(name, before, most)]

    @router.post(
        "/v1/agents/{agent}/decisions",
        status_code=201,
        tags=["decisions"],
        dependencies=[needs("decide")],
        responses=_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 503),
        response_model=DecisionAnswer,
    )
    @quickly(Quick(read_decision, decide, service.knows, 201))
    def post_decision(agent: AgentPath, request: DecisionRequest, key: Once = None) -> Any:
        """Decide among arms; the same `id` again gives the same answer.

        An `Idempotency-Key` stands in for an id that was left out.
        """
        asked = request.model_dump()
        if key is not None and request.id is None:
            asked["id"] = hashlib.sha256(key.encode()).hexdigest()
        return decide(agent, asked)

    @router.post(
        "/v1/agents/{agent}/decisions/batch",
        status_code=201,
        tags=["decisions"],
        dependencies=[needs("decide")],
        responses=_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 503),
        response_model=BatchAnswer,
    )
    def post_decisions(agent: AgentPath, batch: DecisionBatch) -> Any:
        """Decide several times in one call, with one commit: all decisions are made, or none."""
        answers = service.decide_batch(agent, [each.model_dump() for each in batch.decisions])
        for _ in answers:
            metrics.decided(agent)
        return {"decisions": answers}

    @router.get(
        "/v1/agents/{agent}/decisions",
        dependencies=[needs("read")],
        tags=["decisions"],
        responses=_problems(401, 403, 404, 422, 503) | UNCHANGED,
        response_model=list[DecisionRow],
    )
    def get_decisions(
        agent: AgentPath,
        request: Request,
        before: Annotated[int, Query(ge=1, le=2**53, description="A round.")] = 2**53,
        most: Annotated[int, Query(ge=1, le=500)] = 50,
        status: Annotated[Status | None, Query(description="That an outcome has.")] = None,
        search: Annotated[DecisionId | None, Query(description="What ids begin with.")] = None,
    ) -> Response:
        """List decisions of rounds below `before`, latest first."""
        replica = service.replica(agent)
        version = f"{views.version(replica)}-{before}-{most}-{status}-{search}"
        return answered(
            request,
            version,
            lambda: views.decisions(service, replica, before, most, status, search),
        )

    @router.get(
        "/v1/agents/{agent}/decisions/{decision}",
        tags=["decisions"],
        dependencies=[needs("read")],
        responses=_problems(401, 403, 404, 422, 503),
    )
    def get_decision(agent: AgentPath, decision: DecisionId) -> DecisionDetails:
        """Return a decision, its outcomes so far, and why it came out as it did."""
        return views.decision(service, service.replica(agent), decision)

    @router.post(
        "/v1/agents/{agent}/outcomes",
        tags=["outcomes"],
        dependencies=[needs("learn")],
        responses=_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 503),
        response_model=OutcomesAnswer,
    )
    @quickly(Quick(read_outcomes, learn, service.knows, 200))
    def post_outcomes(agent: AgentPath, items: Annotated[OutcomeItems, Body()]) -> Any:
        """Learn what came of chosen arms, each outcome once."""
        return learn(agent, [item.model_dump() for item in items])

    @router.post(
        "/v1/agents/{agent}/observations",
        tags=["outcomes"],
        dependencies=[needs("learn")],
        responses=_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 503),
    )
    def post_observations(
        agent: AgentPath, items: Annotated[Observations, Body()], key: Once = None
    ) -> ObservationsAnswer:
        """Learn outcomes of the past; all of them, or none, and once per `Idempotency-Key`."""
        once = None if key is None else f"#{hashlib.sha256(key.encode()).hexdigest()}"
        learned = service.observe(agent, [item.model_dump() for item in items], once)
        return ObservationsAnswer(learned=learned)

    @router.get(
        "/v1/agents/{agent}/history",
        dependencies=[needs("read")],
        tags=["agents"],
        responses=_problems(401, 403, 404, 422, 503) | UNCHANGED,
        response_model=History,
    )
    def get_history(agent: AgentPath, request: Request, range: Range = "day") -> Response:  # noqa: A002
        """Return decisions and outcomes over time, with what was expected of them then."""
        replica = service.replica(agent)
        version = f"{views.version(replica)}-{range}"
        return answered(request, version, lambda: history(replica, range, time.time()))

    @router.get(
        "/v1/agents/{agent}/features",
        dependencies=[needs("read")],
        tags=["agents"],
        responses=_problems(401, 403, 404, 422, 503) | UNCHANGED,
        response_model=Learned,
    )
    def get_features(agent: AgentPath, request: Request) -> Response:
        """Return which features matter, and how outcomes depend on them; as of lately."""
        replica = service.replica(agent)
        version = f"{replica.id}-{learned.version(replica)}"
        return answered(request, version, lambda: learned.learned(service, replica))

    @router.get(
        "/v1/agents/{agent}/lift",
        dependencies=[needs("read")],
        tags=["agents"],
        responses=_problems(401, 403, 404, 422, 503) | UNCHANGED,
        response_model=Lift,
    )
    def get_lift(agent: AgentPath, request: Request, level: Level = 0.95) -> Response:
        """Return what the agent earns per decision beyond the control group, and the guard."""
        replica = service.replica(agent)
        version = f"{views.version(replica)}-{level}"
        return answered(request, version, lambda: views.lift(replica, level))

    @router.get(
        "/v1/agents/{agent}/comparison",
        dependencies=[needs("read")],
        tags=["agents"],
        responses=_problems(401, 403, 404, 422, 503) | UNCHANGED,
        response_model=Comparison,
    )
    def get_comparison(agent: AgentPath, request: Request, level: Level = 0.95) -> Response:
        """Return, for shadow mode, what the agent expects to gain over the deciding system."""
        replica = service.replica(agent)
        version = f"{views.version(replica)}-{level}"
        return answered(request, version, lambda: views.comparison(replica, level))

    add_routes(router, service, needs, _problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 503))

    @router.get("/v1/me", tags=["service"], responses=_problems(401, 403))
    def get_me(request: Request, bearer: Bearer) -> Me:
        """Return what the key of this request may do; without keys, everything."""
        key = access.key_of(request.headers.get("authorization"))
        if key is None:
            return Me(roles=list(ROLES), agent=None)
        return Me(roles=sorted(key.roles), agent=key.agent)

    @router.get(
        "/v1/server",
        dependencies=[needs("read")],
        tags=["service"],
        responses=_problems(401, 403),
    )
    def get_server() -> Server:
        """Return the version, and how long calls of the process that answers take."""
        calls = [{"call": call, **seen} for call, seen in metrics.speed().items()]
        return Server(version=__version__, calls=calls)  # type: ignore[arg-type]

    @router.get("/healthz", tags=["service"])
    async def healthz() -> Alive:
        """Say that the process is alive."""
        return Alive(status="alive")

    @router.get("/readyz", tags=["service"], responses=_problems(503), response_model=Alive)
    def readyz() -> Any:
        """Say whether the database can be read and written, and all logs are complete."""
        if not background.is_ready:
            return problem(503, "the database cannot be reached, or has not been checked yet")
        if service.damaged:
            return problem(503, "; ".join(service.damaged.values()))
        service.database.probe()
        return {"status": "ready"}

    @router.get(
        "/metrics",
        tags=["service"],
        dependencies=[needs("read")],
        responses=_problems(401, 403) | {200: {"content": {"text/plain": {}}}},
        response_class=Response,
    )
    def get_metrics() -> Response:
        """Return numbers for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _authorization(request: Request) -> str | None:
    """Return the header with the key; Personalizer's clients have one of their own."""
    key = request.headers.get("ocp-apim-subscription-key")
    return request.headers.get("authorization") or (None if key is None else f"Bearer {key}")


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {**PROBLEM, "description": REASONS[status]} for status in statuses}
