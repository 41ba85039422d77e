from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import oclok

MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(oclok.__path__, "oclok.")
    if not any(part.startswith("_") for part in name.split("."))
]


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", []):
        yield name, getattr(module, name)
    for name, value in vars(module).items():
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__:
            yield name, value


def public_members(cls: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(cls).items():
        if name.startswith("_") or inspect.ismemberdescriptor(member):  # fields are in the class's
            continue
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if callable(member) or hasattr(member, "__get__"):
            yield name, member


def first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").strip().split("\n")[0]


@pytest.mark.parametrize("name", ["oclok", *MODULES])
def test_everything_public_says_what_it_is(name: str) -> None:
    module = importlib.import_module(name)
    assert first_line(module), f"{name} has no docstring"
    for public, value in public_names(module):
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        assert first_line(value), f"{name}.{public} has no docstring"
        if inspect.isclass(value) and value.__module__.startswith("oclok"):
            for member, function in public_members(value):
                assert first_line(function), f"{name}.{public}.{member} has no docstring"


@pytest.mark.parametrize("name", ["oclok", *MODULES])
def test_every_name_in_all_is_there_and_named_once(name: str) -> None:
    module = importlib.import_module(name)
    names = getattr(module, "__all__", [])
    assert len(names) == len(set(names))
    for public in names:
        assert hasattr(module, public), f"{name}.__all__ has {public}, which is not there"
