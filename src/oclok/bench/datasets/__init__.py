"""Data sets: files on disk to arrays, and stand-ins for those who have no files."""

from __future__ import annotations

from oclok.bench.datasets.catalogue import Dataset, catalogue, check

__all__ = ["Dataset", "catalogue", "check"]
