"""The calls of the HTTP interface, version 1."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from oclok.service import views
from oclok.service.access import Access
from oclok.service.background import Background
from oclok.service.metrics import Metrics
from oclok.service.problems import problem
from oclok.service.requests import (
    AgentAnswer,
    AgentName,
    DecisionAnswer,
    DecisionDetails,
    DecisionId,
    DecisionRequest,
    DecisionRow,
    Observations,
    ObservationsAnswer,
    OutcomeItems,
    OutcomesAnswer,
    Problem,
    Settings,
)
from oclok.service.service import Service

PROBLEM = {"model": Problem, "content": {"application/problem+json": {}}}
REASONS = {
    400: "The body is not JSON.",
    401: "There is no key, or it is not known.",
    403: "The key may not do this.",
    404: "There is no such agent or decision.",
    409: "There is something else under this name.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "Something in the request is wrong; the detail says what.",
    503: "The database cannot be reached; try again after a while.",
}

AgentPath = Annotated[AgentName, Path(description="The name of the agent.")]
Bearer = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, description="A key"))
]


def routes(service: Service, access: Access, metrics: Metrics, background: Background) -> APIRouter:
    """Return the routes of the API."""
    router = APIRouter()

    def needs(role: str) -> Any:
        async def check(request: Request, bearer: Bearer) -> None:
            agent = request.path_params.get("agent")
            access.check(request.headers.get("authorization"), role, agent)

        return Depends(check)

    @router.put(
        "/v1/agents/{agent}",
        status_code=201,
        dependencies=[needs("admin")],
        responses=_problems(400, 401, 403, 409, 413, 415, 422, 503)
        | {200: {"model": AgentAnswer, "description": "It is there, with the same settings."}},
    )
    def put_agent(agent: AgentPath, settings: Settings, response: Response) -> AgentAnswer:
        """Make an agent."""
        if not service.put_agent(agent, settings.model_dump()):
            response.status_code = 200
        return views.agent(service.replica(agent))

    @router.get("/v1/agents", dependencies=[needs("read")], responses=_problems(401, 403, 503))
    def get_agents() -> list[AgentAnswer]:
        """List all agents."""
        service.refresh()
        return [views.agent(replica) for replica in service.replicas]

    @router.get(
        "/v1/agents/{agent}",
        dependencies=[needs("read")],
        responses=_problems(401, 403, 404, 422, 503),
    )
    def get_agent(agent: AgentPath) -> AgentAnswer:
        """Return counts, calibration, health and model weights of an agent."""
        return views.agent(service.replica(agent))

    @router.post(
        "/v1/agents/{agent}/decisions",
        status_code=201,
        dependencies=[needs("decide")],
        responses=_problems(400, 401, 403, 404, 413, 415, 422, 503),
        response_model=DecisionAnswer,
    )
    def post_decision(agent: AgentPath, request: DecisionRequest) -> Any:
        """Decide among arms; the same `id` again gives the same answer."""
        asked = {name: getattr(request, name) for name in DecisionRequest.model_fields}
        asked["arms"] = [{"id": arm.id, "features": arm.features} for arm in request.arms]
        answer = service.decide(agent, asked)
        metrics.decided(agent)
        return answer

    @router.get(
        "/v1/agents/{agent}/decisions",
        dependencies=[needs("read")],
        responses=_problems(401, 403, 404, 422, 503),
    )
    def get_decisions(
        agent: AgentPath,
        before: Annotated[int, Query(ge=1, le=2**53)] = 2**53,
        most: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> list[DecisionRow]:
        """List decisions of rounds below `before`, latest first."""
        return views.decisions(service, service.replica(agent), before, most)

    @router.get(
        "/v1/agents/{agent}/decisions/{decision}",
        dependencies=[needs("read")],
        responses=_problems(401, 403, 404, 422, 503),
    )
    def get_decision(agent: AgentPath, decision: DecisionId) -> DecisionDetails:
        """Return a decision, its outcomes so far, and why it came out as it did."""
        return views.decision(service, service.replica(agent), decision)

    @router.post(
        "/v1/agents/{agent}/outcomes",
        dependencies=[needs("learn")],
        responses=_problems(400, 401, 403, 404, 413, 415, 422, 503),
        response_model=OutcomesAnswer,
    )
    def post_outcomes(agent: AgentPath, items: Annotated[OutcomeItems, Body()]) -> Any:
        """Learn what came of chosen arms, each outcome once."""
        answer = service.learn(agent, [item.model_dump() for item in items])
        for result in ("learned", "repeated", "corrected", "quarantined"):
            metrics.told(agent, result, answer[result])
        metrics.told(agent, "rejected", len(answer["rejected"]))
        return answer

    @router.post(
        "/v1/agents/{agent}/observations",
        dependencies=[needs("learn")],
        responses=_problems(400, 401, 403, 404, 413, 415, 422, 503),
    )
    def post_observations(
        agent: AgentPath, items: Annotated[Observations, Body()]
    ) -> ObservationsAnswer:
        """Learn outcomes of the past; all of them, or none."""
        learned = service.observe(agent, [item.model_dump() for item in items])
        return ObservationsAnswer(learned=learned)

    @router.get(
        "/v1/agents/{agent}/history",
        dependencies=[needs("read")],
        responses=_problems(401, 403, 404, 422, 503),
    )
    def get_history(agent: AgentPath) -> dict[str, Any]:
        """Return the latest outcomes with what was expected of them, and how long calls take."""
        return views.history(service, service.replica(agent), metrics)

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Say that the process is alive."""
        return {"status": "alive"}

    @router.get("/readyz", responses=_problems(503))
    def readyz() -> Any:
        """Say whether the database can be reached and all models are up to date."""
        service.log.agents()
        if not background.is_ready:
            return problem(503, "models are being built")
        return {"status": "ready"}

    @router.get(
        "/metrics",
        dependencies=[needs("read")],
        responses=_problems(401, 403) | {200: {"content": {"text/plain": {}}}},
        response_class=Response,
    )
    def get_metrics() -> Response:
        """Return numbers for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {**PROBLEM, "description": REASONS[status]} for status in statuses}
