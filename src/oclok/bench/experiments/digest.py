"""A hash of values and code: it changes when anything that a run's numbers depend on changes.

Values (parameters, arrays, kernels, closures) enter with their content. Functions and classes enter
with their bytecode and, through the names that it uses, with the functions, classes and globals
they depend on, across all files that are not installed packages, and across oclok. Comments,
docstrings and line numbers do not enter. An installed package enters with its version.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import pickle
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pandas as pd

#: Digits of a hash; 16 hexadecimal ones make a collision among a million runs unlikely (3e-8).
DIGITS = 16

#: Modules of oclok on which no number depends; the first has a register of all classes.
_IRRELEVANT = {"oclok.persistence", "oclok.threads"}
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range)
#: What a wrapper of functions is described by.
_PARTS = {
    functools.partial: ("func", "args", "keywords"),
    MethodType: ("__func__", "__self__"),
    property: ("fget", "fset", "fdel"),
}
_FOLDERS = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = tuple({str(Path(sysconfig.get_path(name)).resolve()) for name in _FOLDERS})


def digest(*things: object) -> str:
    """Return a hash of `things`, of the code that they name and of all code behind that."""
    walk = _Walk()
    text = "\n".join([*map(walk.value, things), *walk.code()])
    return _sha(text.encode())


class _Walk:
    """Describes values as text, and collects the functions and classes that are met on the way."""

    def __init__(self) -> None:
        self._met: dict[int, FunctionType | type] = {}  # by id; kept alive, so ids stay unique
        self._open: list[FunctionType | type] = []
        self._inside: set[int] = set()

    def code(self) -> list[str]:
        """Return descriptions of all functions and classes met so far, and met by them."""
        found = []
        while self._open:
            thing = self._open.pop()
            found.append(self._class(thing) if isinstance(thing, type) else self._function(thing))
        return sorted(found)

    def value(self, thing: Any) -> str:
        if isinstance(thing, _PLAIN):
            return f"{type(thing).__name__} {thing!r}"
        if isinstance(thing, FunctionType | type):
            return self._reference(thing)
        if isinstance(thing, ModuleType):
            return f"module {thing.__name__} {_version(thing.__name__)}"
        if isinstance(thing, BuiltinFunctionType):
            return f"builtin {thing.__module__}.{thing.__qualname__}"
        if id(thing) in self._inside:
            return "itself"
        self._inside.add(id(thing))
        try:
            return f"{self._reference(type(thing))}({self._content(thing)})"
        finally:
            self._inside.discard(id(thing))

    def _content(self, thing: Any) -> str:
        if isinstance(thing, np.ndarray) and thing.dtype != object:
            return f"{thing.dtype} {thing.shape} {_sha(np.ascontiguousarray(thing).tobytes())}"
        if isinstance(thing, pd.DataFrame | pd.Series | pd.Index):
            hashes = pd.util.hash_pandas_object(thing).to_numpy().tobytes()
            return f"{list(getattr(thing, 'columns', ()))!r} {_sha(hashes)}"
        if isinstance(thing, Mapping):
            return ", ".join(f"{self.value(k)}: {self.value(v)}" for k, v in thing.items())
        if isinstance(thing, list | tuple | set | frozenset):
            parts = map(self.value, thing)
            return ", ".join(parts if isinstance(thing, list | tuple) else sorted(parts))
        if isinstance(thing, np.random.SeedSequence):
            return f"{thing.entropy} {thing.spawn_key}"
        for kind, names in _PARTS.items():
            if isinstance(thing, kind):
                return ", ".join(self.value(getattr(thing, name)) for name in names)
        for wrapped in ("__wrapped__", "__func__", "func"):  # caches, class and static methods
            if callable(getattr(thing, wrapped, None)):
                return self.value(getattr(thing, wrapped))
        if getattr(thing, "__dict__", None):
            return self.value(vars(thing))
        try:
            return _sha(pickle.dumps(thing))
        except Exception:  # a lock, an open file: nothing can be said of it but its type
            return ""

    def _reference(self, thing: FunctionType | type) -> str:
        """Return the name of a function or class, and see that its code is described."""
        name = f"{thing.__module__}.{thing.__qualname__}"
        if thing.__module__ in _IRRELEVANT:
            return name
        if not _is_own(thing.__module__):
            return f"{name} {_version(thing.__module__)}"
        if id(thing) not in self._met:
            self._met[id(thing)] = thing
            self._open.append(thing)
        if isinstance(thing, FunctionType):  # lambdas share a name
            name += f" {_sha(_code_text(thing.__code__, thing.__doc__).encode())}"
        return name

    def _class(self, cls: type) -> str:
        own = (item for item in sorted(vars(cls).items()) if not _is_bookkeeping(*item))
        members = (f"{name}: {self.value(member)}" for name, member in own)
        bases = ", ".join(map(self.value, cls.__bases__))
        return f"class {cls.__module__}.{cls.__qualname__}({bases}) {'; '.join(members)}"

    def _function(self, function: FunctionType) -> str:
        parts = [
            f"def {function.__module__}.{function.__qualname__}",
            _code_text(function.__code__, function.__doc__),
            self.value(function.__defaults__),
            self.value(function.__kwdefaults__),
        ]
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # not assigned yet
                parts.append(self.value(cell.cell_contents))
        names = _names(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            thing = function.__globals__[name]
            parts.append(f"{name} = {self._global(function, thing, names)}")
        return "; ".join(parts)

    def _global(self, function: FunctionType, thing: Any, names: set[str]) -> str:
        """Describe a global of `function`, in whose code are these `names`."""
        if isinstance(thing, ModuleType) and thing.__name__ in _IRRELEVANT:
            return thing.__name__
        if isinstance(thing, ModuleType) and _is_own(thing.__name__):
            used = sorted(names & vars(thing).keys())
            return ", ".join(f"{name}: {self.value(vars(thing)[name])}" for name in used)
        is_ours = (function.__module__ or "").split(".")[0] == "oclok"
        if is_ours and not isinstance(thing, (*_PLAIN, tuple, type, FunctionType)):
            return type(thing).__name__  # oclok's constants are plain: the rest are caches
        return self.value(thing)


def _is_bookkeeping(name: str, member: object) -> bool:
    """Return whether an attribute of a class is Python's own, which may come and go."""
    is_code = callable(member) or isinstance(member, property | classmethod | staticmethod)
    return name == "_abc_impl" or (name.startswith("__") and name.endswith("__") and not is_code)


@functools.cache
def _code_text(code: CodeType, doc: str | None = None) -> str:
    constants = []
    for constant in code.co_consts[1:] if code.co_consts[:1] == (doc,) else code.co_consts:
        if isinstance(constant, frozenset):  # its order changes from process to process
            constant = sorted(map(repr, constant))
        is_code = isinstance(constant, CodeType)
        text = _code_text(constant) if is_code else f"{type(constant).__name__} {constant!r}"
        constants.append(text)
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return f"{code.co_code.hex()} {shape} {names} {code.co_exceptiontable.hex()} {constants}"


@functools.cache
def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes in `code`."""
    inner = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


@functools.cache
def _is_own(name: str | None) -> bool:
    """Return whether the code of a module is looked into: oclok's, and what is not installed."""
    if name is None or name.split(".")[0] in ("oclok", "__main__"):
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return name not in sys.modules and name not in sys.stdlib_module_names
    return not str(Path(file).resolve()).startswith(_INSTALLED)


def _version(module: str) -> str:
    return str(getattr(sys.modules.get(module.split(".")[0]), "__version__", ""))


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]
