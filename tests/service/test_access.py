"""Keys and roles."""

from __future__ import annotations

import subprocess
import sys

import pytest

from oclok.errors import InputError
from oclok.service.access import Access, digest, is_loopback
from oclok.service.database import Database

ROUTES = [
    ("PUT", "/v1/agents/{agent}", "admin"),
    ("GET", "/v1/agents/{agent}", "read"),
    ("GET", "/v1/agents/{agent}/decisions", "read"),
    ("GET", "/v1/agents/{agent}/decisions/d", "read"),
    ("GET", "/v1/agents/{agent}/history", "read"),
    ("POST", "/v1/agents/{agent}/decisions", "decide"),
    ("POST", "/v1/agents/{agent}/outcomes", "learn"),
    ("POST", "/v1/agents/{agent}/observations", "learn"),
]


@pytest.fixture
def client(storage):
    """A client of an application that has keys, by role and agent."""
    from starlette.testclient import TestClient

    from oclok.service.app import create_app

    database = Database(storage)
    database.migrate()
    keys = Access(database)
    made = {
        (role, agent): keys.add("somebody", [role], agent)
        for role in ("decide", "learn", "read", "admin")
        for agent in (None, "a")
    }
    with TestClient(create_app(storage), raise_server_exceptions=False) as client:
        client.made = made
        yield client


def test_each_call_needs_its_role_for_its_agent(client):
    def status(method, path, key):
        body = {"json": {}} if method in ("PUT", "POST") else {}
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return client.request(method, path, headers=headers, **body).status_code

    for method, pattern, needed in ROUTES:
        for agent in ("a", "b"):
            path = pattern.format(agent=agent)
            assert status(method, path, None) == 401
            assert status(method, path, "oclok_wrong") == 401
            for (role, only), key in client.made.items():
                allowed = role in (needed, "admin") and only in (None, agent)
                assert (status(method, path, key) != 403) == allowed
                assert status(method, path, key) != 401
    assert status("GET", "/v1/agents", client.made["read", "a"]) == 403
    assert status("GET", "/v1/agents", client.made["read", None]) == 200
    assert status("GET", "/metrics", None) == 401
    assert status("GET", "/healthz", None) == 200


def test_keys_are_stored_hashed_and_refused_once_removed(client, storage):
    database = Database(storage)
    key = client.made["read", None]
    with database.read() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM keys").all()
    assert key not in str(rows)
    assert digest(key) in str(rows)
    access = Access(database)
    access.check(f"Bearer {key}", "read", None)
    for stored in access.keys:
        access.remove(stored.id)
    access.refresh()
    for authorization in (f"Bearer {key}", None):
        with pytest.raises(Exception, match="key"):  # none is left, and still one is needed
            access.check(authorization, "read", None)


def test_keys_need_a_role_and_a_name(storage):
    database = Database(storage)
    database.migrate()
    with pytest.raises(InputError, match="roles"):
        Access(database).add("somebody", ["king"])
    with pytest.raises(InputError, match="name"):
        Access(database).add("<script>", ["read"])


def test_loopback():
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.3.2.1", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "example.org", "10.0.0.1", "")))


def test_without_keys_other_addresses_are_refused(storage):
    command = [sys.executable, "-m", "oclok", "serve", "--storage", storage, "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "oclok keys add" in done.stderr
