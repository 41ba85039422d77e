"""Who may do what: bearer keys with roles, stored as hashes and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import time
from functools import lru_cache
from typing import NamedTuple

from fastapi import HTTPException

from oclok.errors import InputError
from oclok.service.database import Database, execute, insert

ROLES = ("decide", "learn", "read", "admin")
#: A key has 32 random bytes: it cannot be guessed, and its hash needs no salt.
PREFIX, BYTES = "oclok_", 32


class Key(NamedTuple):
    """A key as it is stored; `agent` is None if it is for all of them."""

    id: int
    name: str
    digest: str
    roles: frozenset[str]
    agent: str | None
    created: float

    def allows(self, role: str, agent: str | None) -> bool:
        """Return whether the key may do what needs `role` with an agent; None: with all."""
        return bool(self.roles & {role, "admin"}) and self.agent in (None, agent)


class Access:
    """The keys of a database, and whether they allow a request.

    Without keys everybody may do everything, from this machine. Once there was a key, requests
    without one are refused for as long as this process runs.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.needs_key = False
        self.refresh()

    def refresh(self) -> None:
        """Read the keys again."""
        rows = self._database.rows(f"SELECT {', '.join(Key._fields)} FROM keys ORDER BY id")
        self.keys = [Key._make(row)._replace(roles=frozenset(row.roles.split(","))) for row in rows]
        self.needs_key = self.needs_key or bool(self.keys)

    def add(self, name: str, roles: list[str], agent: str | None = None) -> str:
        """Make a key and return it: this is the only time that it can be seen."""
        if not roles or not set(roles) <= set(ROLES):
            raise InputError(f"roles must be of {', '.join(ROLES)}; got {roles!r}")
        if not re.fullmatch(r"[\w.@ -]{1,64}", name):
            raise InputError(f"the name of a key must be 1 to 64 letters or digits; got {name!r}")
        key = PREFIX + secrets.token_urlsafe(BYTES)
        values = (name, digest(key), ",".join(dict.fromkeys(roles)), agent, time.time())
        with self._database.write() as connection:
            insert(connection, "keys", **dict(zip(Key._fields[1:], values, strict=True)))
        return key

    def remove(self, number: int) -> bool:
        """Remove a key and return whether it was there."""
        with self._database.write() as connection:
            return bool(execute(connection, "DELETE FROM keys WHERE id = :id", id=number).rowcount)

    def check(self, authorization: str | None, role: str, agent: str | None) -> None:
        """Raise 401 or 403 unless a request with this header may do what needs `role`."""
        found = self.key_of(authorization)
        if found is not None and not found.allows(role, agent):
            target = "all agents" if agent is None else f"agent {agent!r}"
            raise HTTPException(403, f"the key does not have the role {role!r} for {target}")

    def key_of(self, authorization: str | None) -> Key | None:
        """Return the key in a header, None if none is needed; raise 401 if it is not known."""
        if not self.needs_key:
            return None
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise HTTPException(401, "a key is needed: Authorization: Bearer oclok_…")
        presented = digest(token.strip())
        found = None
        for key in self.keys:  # all of them, so that time tells nothing
            if hmac.compare_digest(key.digest, presented):
                found = key
        if found is None:
            raise HTTPException(401, "the key is not known")
        return found

    def allows_host(self, host: str) -> bool:
        """Return whether a Host header is accepted; without keys only that of this machine.

        This stops DNS rebinding: a page in a browser here that reaches us under its own name.
        """
        if self.needs_key:
            return True
        name = host.rsplit("]", 1)[0].lstrip("[") if host.startswith("[") else host.split(":")[0]
        return is_loopback(name)


@lru_cache(100)
def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def digest(key: str) -> str:
    """Return the hash that is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()
