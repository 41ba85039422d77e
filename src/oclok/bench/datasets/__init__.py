"""Data sets: files on disk to arrays, and stand-ins that need no files."""

from __future__ import annotations

from oclok.bench.datasets.catalogue import CATALOGUE, check

__all__ = ["CATALOGUE", "check"]
