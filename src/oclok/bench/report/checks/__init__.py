"""How sentences about results are checked: each check is a rule in words and in code."""

from __future__ import annotations

from oclok.bench.report.checks.base import CLOSE, IDENTICAL, SUBSTANTIAL, Check, Finding, about

__all__ = ["CLOSE", "IDENTICAL", "SUBSTANTIAL", "Check", "Finding", "about"]
