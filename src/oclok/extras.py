"""What to install when a package that is not part of the core is missing."""
# Tested in tests/test_import.py: its example is a doctest, and imports are tested there.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from oclok.errors import MissingExtraError


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Turn a failed import in the body into an error that names the extra to install.

    Examples:
        >>> with needs("bench"):
        ...     import no_such_package
        Traceback (most recent call last):
        ...
        oclok.errors.MissingExtraError: no_such_package is missing; pip install 'oclok[bench]'
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        if (missing.name or "oclok").split(".")[0] == "oclok":
            raise
        raise MissingExtraError(
            f"{missing.name} is missing; pip install 'oclok[{extra}]'"
        ) from None
