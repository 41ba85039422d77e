"""One file per agent; a process that was overtaken by another one does not overwrite it.

A version is a digest of the check sums in a file's directory of entries, so that it is known
without reading the file. `save` needs the version that is there. It locks the folder, so that of
two processes that save at the same time one is refused.
"""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from oclok import persistence
from oclok.errors import StorageError
from oclok.persistence import Persistent, Thing


def save(thing: Persistent, path: str | os.PathLike[str], version: str | None) -> str:
    """Write `thing` if the file there has `version`, or none is there; return the new one."""
    target = Path(path)
    with _locked(target.parent):
        found = _version(target)
        if found is not None and found != version:
            raise StorageError(
                f"{target} was written by another process since this agent loaded or saved it, or "
                "holds something else; load it and go on from there, or save under another name"
            )
        persistence.save(thing, target)
        return _version(target) or ""


def load(cls: type[Thing], path: str | os.PathLike[str]) -> tuple[Thing, str]:
    """Return what `save` wrote, and its version."""
    version = _version(Path(path))  # if the file changes before it is read, `save` refuses
    return persistence.load(path, cls), version or ""


def _version(file: Path) -> str | None:
    """Return the version of a file; None if there is none."""
    try:
        with zipfile.ZipFile(file) as archive:
            return persistence.digest_of(archive)
    except FileNotFoundError:
        return None
    except zipfile.BadZipFile:
        return "not written by oclok"
    except OSError as reason:
        raise StorageError(f"cannot read {file}: {reason}") from None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes, where the system can."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock: two saves within a moment may both succeed
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as reason:
        raise StorageError(f"cannot write to {folder}: {reason}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
