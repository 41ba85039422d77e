"""Objects to one file and back, with no pickle: nothing in a file is ever executed.

A file is a zip archive: `state.json`, a tree of plain values, one `.npy` entry per array, and
`digest`, which seals names and check sums of the others: an altered file is refused. In the
tree, what JSON does not know is an object with one `$` key:

    {"$array": "0.npy"}                        a NumPy array of numbers
    {"$tuple": […]}  {"$float": "nan"}         what their names say
    {"$dict": [[key, value], …]}               a dict whose keys are no plain strings
    {"$generator": {…}}                        the state of a numpy.random.Generator
    {"$kernel": "RBF", "params": {…}}          a kernel of sklearn.gaussian_process.kernels
    {"$estimator": "module.class", "params": {…}}   an estimator of scikit-learn, not fitted
    {"$ufunc": "log1p"}                        a NumPy universal function
    {"$object": "TopK", "state": {…}}          a `Persistent` object; the first is number 0
    {"$same": 3}                               the object of that number once more

Names in a state are attributes of the class. A change to one is a new version of the format, and a
function in `MIGRATIONS` that turns trees of the version before into it.

Only classes that are already imported and derive from `Persistent` are ever made from a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import math
import os
import re
import secrets
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from oclok.errors import StorageError

FORMAT = "oclok"
VERSION, OLDEST = 3, 3
_EPOCH = (1980, 1, 1, 0, 0, 0)  # a fixed time stamp: equal states give equal bytes
#: MIGRATIONS[v] turns the tree of a file of version v into one of version v + 1.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
_KERNELS = "sklearn.gaussian_process.kernels"
_BIT_GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")


class Persistent:
    """An object that `save` can write. By default its state is its `__dict__`.

    Attributes in `_transient` are not saved, and None after loading. A class whose arrays must be
    finite sets `_is_finite`, and others are refused on loading. A class with attributes that are
    not plain values, arrays, kernels, generators or other `Persistent` objects overrides `_state`
    and `_restore`.
    """

    _classes: ClassVar[dict[str, type[Persistent]]] = {}
    _is_finite: ClassVar[bool] = False
    _transient: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Persistent._classes[_class_name(cls)] = cls

    def _state(self) -> dict[str, Any]:
        return {name: v for name, v in self.__dict__.items() if name not in self._transient}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(dict.fromkeys(self._transient), **state)


Thing = TypeVar("Thing", bound=Persistent)


def save(thing: Persistent, path: str | os.PathLike[str]) -> None:
    """Write `thing` to `path` atomically: a crash leaves the old file or the new one."""
    target, content = Path(path), dumps(thing)
    try:
        with replacing(target) as temporary, open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as reason:
        raise StorageError(f"cannot write {target}: {reason}") from None
    if hasattr(os, "O_DIRECTORY"):  # the new name is on disk, too
        descriptor = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a path to write to, which takes the place of `target` at the end of the block."""
    temporary = target.parent / f".{target.name}.{secrets.token_hex(8)}"
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def load(
    path: str | os.PathLike[str],
    cls: type[Thing] = Persistent,  # type: ignore[assignment]  # any class
) -> Thing:
    """Read a `cls` that `save` wrote; `StorageError` for anything else."""
    try:
        thing = loads(Path(path).read_bytes())
    except (OSError, StorageError) as reason:
        raise StorageError(f"cannot read {path}: {reason}") from None
    if not isinstance(thing, cls):
        raise StorageError(f"{path}: holds a {type(thing).__name__} and no {cls.__name__}")
    return thing


def dumps(thing: Persistent) -> bytes:
    """Return the bytes that `save` writes; equal states give equal bytes."""
    writer = _Writer()
    tree = {"format": FORMAT, "version": VERSION, "content": writer.encode(thing)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("state.json", _EPOCH), json.dumps(tree, allow_nan=False))
        for position, array in enumerate(writer.arrays):
            entry = zipfile.ZipInfo(f"{position}.npy", _EPOCH)
            with archive.open(entry, "w", force_zip64=array.nbytes > 2**30) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
        archive.writestr(zipfile.ZipInfo("digest", _EPOCH), digest_of(archive))
    return buffer.getvalue()


def digest_of(archive: zipfile.ZipFile) -> str:
    """Return a digest of the names, sizes and check sums of all entries but `digest`."""
    entries = [(e.filename, e.file_size, e.CRC) for e in archive.infolist()]
    sealed = [entry for entry in entries if entry[0] != "digest"]
    return hashlib.blake2b(repr(sealed).encode(), digest_size=16).hexdigest()


def loads(content: bytes) -> Persistent:
    """Return the object that `dumps` turned into bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            tree = json.loads(archive.read("state.json"))
            if not isinstance(tree, dict) or tree.get("format") != FORMAT:
                raise StorageError("not a file written by oclok")
            version = _readable(tree.get("version"))
            if archive.read("digest").decode() != digest_of(archive):
                raise StorageError("the file was altered after it was written")
            for step in range(version, VERSION):
                tree = MIGRATIONS[step](tree)
            thing = _Reader(archive).decode(tree["content"])
    except StorageError:
        raise
    except (zipfile.BadZipFile, EOFError) as reason:
        raise StorageError(f"not a complete file written by oclok: {reason}") from None
    except Exception as reason:  # a malformed tree can lead to any error
        raise StorageError(f"not a valid file written by oclok: {reason!r}") from None
    if not isinstance(thing, Persistent):
        raise StorageError(f"holds a {type(thing).__name__}, not an object of oclok")
    return thing


def _readable(version: Any) -> int:
    if not isinstance(version, int):
        raise StorageError(f"the version must be a number; got {version!r}")
    if version > VERSION:
        raise StorageError(
            f"written by a newer oclok (file version {version}, this one reads up to {VERSION}); "
            "upgrade oclok to load it"
        )
    if version < OLDEST:
        raise StorageError(
            f"written before oclok was released (file version {version}, this one reads from "
            f"{OLDEST} on)"
        )
    return version


def _class_name(cls: type) -> str:
    own = cls.__module__.split(".")[0] == "oclok"
    return cls.__qualname__ if own else f"{cls.__module__}.{cls.__qualname__}"


class _Writer:
    """Turns values into a tree; arrays go to a list of their own."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._seen: dict[int, tuple[int, Persistent]] = {}  # kept, so that no id is used twice

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": repr(value)}
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biuf":
                raise StorageError(f"cannot save an array of dtype {value.dtype}")
            self.arrays.append(value)
            return {"$array": f"{len(self.arrays) - 1}.npy"}
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if isinstance(value, tuple):
            return {"$tuple": [self.encode(item) for item in value]}
        if isinstance(value, dict):
            if not all(isinstance(key, str) and not key.startswith("$") for key in value):
                return {"$dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
            return {key: self.encode(item) for key, item in value.items()}
        if isinstance(value, Persistent):
            return self._encode_object(value)
        if isinstance(value, np.random.Generator):
            return {"$generator": self.encode(value.bit_generator.state)}
        name = getattr(value, "__name__", "")
        if isinstance(value, np.ufunc) and getattr(np, name, None) is value:
            return {"$ufunc": name}
        return self._encode_estimator(value)

    def _encode_object(self, value: Persistent) -> Any:
        if id(value) in self._seen:
            return {"$same": self._seen[id(value)][0]}
        self._seen[id(value)] = len(self._seen), value
        state = {key: self.encode(item) for key, item in value._state().items()}
        return {"$object": _class_name(type(value)), "state": state}

    def _encode_estimator(self, value: Any) -> Any:
        cls = type(value)
        name = f"{cls.__module__}.{cls.__qualname__}"
        if not hasattr(value, "get_params"):
            raise StorageError(
                f"cannot save a {name}: derive it from oclok.persistence.Persistent, or keep it "
                "out of the saved object"
            )
        if not name.startswith("sklearn."):
            raise StorageError(f"cannot save a {name}: only scikit-learn's own")
        form = {"$kernel": cls.__name__} if name.startswith(_KERNELS) else {"$estimator": name}
        return {**form, "params": self.encode(value.get_params(deep=False))}


class _Reader:
    """Turns a tree back into values."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._objects: list[Persistent] = []

    def decode(self, value: Any) -> Any:
        match value:
            case list():
                return [self.decode(item) for item in value]
            case {"$float": text}:
                return float(text)
            case {"$array": name}:
                content = io.BytesIO(self._archive.read(name))
                return np.lib.format.read_array(content, allow_pickle=False)
            case {"$tuple": items}:
                return tuple(self.decode(item) for item in items)
            case {"$generator": state}:
                return _decode_generator(self.decode(state))
            case {"$ufunc": name}:
                function = getattr(np, name, None)
                if not isinstance(function, np.ufunc):
                    raise StorageError(f"unknown NumPy function {name!r}")
                return function
            case {"$dict": items}:
                return {self.decode(key): self.decode(item) for key, item in items}
            case {"$kernel": name, "params": params}:
                return _decode_estimator(f"{_KERNELS}.{name}", self.decode(params))
            case {"$estimator": name, "params": params}:
                return _decode_estimator(name, self.decode(params))
            case {"$object": name, "state": state}:
                return self._decode_object(name, state)
            case {"$same": number}:
                return self._objects[number]
            case dict():
                if any(key.startswith("$") for key in value):
                    raise StorageError(f"unknown kind of value {sorted(value)}")
                return {key: self.decode(item) for key, item in value.items()}
        return value

    def _decode_object(self, name: str, state: Any) -> Persistent:
        import oclok.oracles
        import oclok.policies
        import oclok.posterior  # noqa: F401  (imported for their classes)

        cls = Persistent._classes.get(name)
        if cls is None:
            raise StorageError(
                f"unknown class {name!r}; import the module that defines it, then load"
            )
        thing: Persistent = cls.__new__(cls)
        self._objects.append(thing)
        values = self.decode(state)
        for key, value in values.items() if cls._is_finite else ():
            if not _are_finite(value):
                raise StorageError(f"{key!r} of a {name} holds numbers that are not finite")
        thing._restore(values)
        return thing


def _are_finite(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_are_finite, value))
    return not isinstance(value, np.ndarray) or bool(np.isfinite(value).all())


def _decode_generator(state: dict[str, Any]) -> np.random.Generator:
    if state["bit_generator"] not in _BIT_GENERATORS:
        raise StorageError(f"unknown random generator {state['bit_generator']!r}")
    bits = getattr(np.random, state["bit_generator"])(0)
    bits.state = state
    return np.random.Generator(bits)


def _decode_estimator(name: str, params: dict[str, Any]) -> Any:
    from sklearn.base import BaseEstimator
    from sklearn.gaussian_process.kernels import Kernel

    module, _, own = name.rpartition(".")
    if re.fullmatch(r"sklearn(\.\w+)+", module) is None:
        raise StorageError(f"{module!r} is not a module of scikit-learn")
    cls = getattr(importlib.import_module(module), own, None)
    if not (isinstance(cls, type) and issubclass(cls, BaseEstimator | Kernel)):
        raise StorageError(f"{module} has no estimator {own!r}")
    return cls(**params)
