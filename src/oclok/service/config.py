"""Options of the service, each declared once: `--max-models` is also `OCLOK_MAX_MODELS`."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oclok.errors import InputError, StorageError

#: How `serve` hands its options to the worker processes.
VARIABLE = "OCLOK_CONFIG"
PASSWORD = "OCLOK_STORAGE_PASSWORD"
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _option(default: Any, help_: str) -> Any:
    return dataclasses.field(default=default, metadata={"help": help_})


@dataclass(frozen=True)
class Config:
    """The options of `oclok serve`."""

    storage: str = _option("sqlite:///oclok.db", "sqlite:///FILE or postgresql://USER@HOST/NAME.")
    password_file: str | None = _option(
        None, f"File with the database password; the variable {PASSWORD} works, too."
    )
    host: str = _option("127.0.0.1", "Address to listen on.")
    port: int = _option(8000, "Port to listen on.")
    workers: int = _option(1, "Number of processes.")
    root_path: str = _option("", "Path under which a proxy serves this, such as /oclok.")
    tls_certificate: str | None = _option(None, "File with the certificate chain, for HTTPS.")
    tls_key: str | None = _option(None, "File with the private key of the certificate.")
    log_format: str = _option("text", "text, or json with one object per line.")
    log_level: str = _option("warning", "debug, info (every request), warning or error.")
    oracle_seconds: float = _option(1.0, "Longest search of an oracle, per decision.")
    oracle_searches: int = _option(2, "Searches of an agent at once, per process.")
    max_models: int = _option(0, "Models kept in memory per process; 0 for all.")
    keep: str | None = _option(None, "Age at which logged bodies are dropped, such as 90d.")

    def __post_init__(self) -> None:
        levels = ("debug", "info", "warning", "error")
        for name, is_right, expected in (
            ("workers", self.workers >= 1, "at least 1"),
            ("oracle_searches", self.oracle_searches >= 1, "at least 1"),
            ("oracle_seconds", self.oracle_seconds > 0, "positive"),
            ("port", 0 <= self.port <= 65535, "from 0 to 65535"),
            ("max_models", self.max_models >= 0, "at least 0"),
            ("log_format", self.log_format in ("text", "json"), "text or json"),
            ("log_level", self.log_level in levels, "debug, info, warning or error"),
        ):
            if not is_right:
                raise InputError(f"{name} must be {expected}; got {getattr(self, name)!r}")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise InputError("tls_certificate and tls_key go together; one of them is missing")
        self.keep_seconds  # noqa: B018  (raises what is wrong with it)

    @property
    def keep_seconds(self) -> float | None:
        """The age of `keep` in seconds.

        Examples:
            >>> Config(keep="90d").keep_seconds
            7776000.0
        """
        if self.keep is None:
            return None
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", self.keep)
        if found is None or float(found[1]) == 0:
            raise InputError(
                f"keep must be a number with s, m, h or d, such as 90d; got {self.keep!r}"
            )
        return float(found[1]) * SECONDS[found[2]]

    @property
    def database_url(self) -> str:
        """The storage with its password, which may come from a file or the environment."""
        return with_password(self.storage, self.password_file)

    def to_environment(self) -> None:
        """Let worker processes have the same options."""
        os.environ[VARIABLE] = json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_environment(cls) -> Config:
        """Return the options of the process that started this one."""
        return cls(**json.loads(os.environ[VARIABLE]))


def with_password(storage: str, password_file: str | None = None) -> str:
    """Return a storage URL with the password from a file or the environment, if it has none."""
    if password_file is not None:
        try:
            password = Path(password_file).read_text().rstrip("\r\n")
        except OSError as reason:
            raise StorageError(f"the password file cannot be read: {reason.strerror}") from None
    elif PASSWORD in os.environ:
        password = os.environ[PASSWORD]
    else:
        return storage
    from sqlalchemy.engine import make_url  # commands of the bench run without it
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(storage)
    except (ArgumentError, ValueError):
        return storage  # the database says what is wrong with it
    if url.drivername == "sqlite" or url.password:
        return storage
    return url.set(password=password).render_as_string(hide_password=False)


def without_password(storage: str) -> str:
    """Return a storage URL as it may be shown, even if it is malformed.

    Examples:
        >>> without_password("postgresql://me:secret@host:x/name")
        'postgresql://me:***@host:x/name'
    """
    return re.sub(r"(//[^:/@]*):.*@", r"\1:***@", storage)
