"""Arms with names: features, identity, late feedback, health and explanation, over any policy."""

from oclok.agent.agent import Agent
from oclok.agent.decision import AgentDecision
from oclok.agent.explanation import Explanation
from oclok.agent.feedback import Learned
from oclok.agent.guard import GuardReport
from oclok.agent.health import Finding
from oclok.agent.lift import Lift
from oclok.agent.schema import Schema
from oclok.agent.shadow import Comparison

__all__ = [
    "Agent",
    "AgentDecision",
    "Comparison",
    "Explanation",
    "Finding",
    "GuardReport",
    "Learned",
    "Lift",
    "Schema",
]
