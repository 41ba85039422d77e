"""Log lines that can be searched."""

from __future__ import annotations

import json
import logging
import sys

from oclok.service.telemetry import REQUEST, LineFormatter, request_id


def record(message: str = "hello", **fields) -> logging.LogRecord:
    entry = logging.LogRecord("oclok.service", logging.WARNING, "", 0, message, (), None)
    entry.fields = fields
    return entry


def test_a_line_is_one_json_object_with_level_time_agent_and_request():
    line = _line({"request": "r1", "agent": "a"}, is_json=True, status=200)
    entry = json.loads(line)
    assert "\n" not in line
    assert entry["level"] == "warning"
    assert entry["time"].endswith("+00:00")
    assert (entry["request"], entry["agent"], entry["status"]) == ("r1", "a", 200)
    assert "request" not in json.loads(LineFormatter(is_json=True).format(record()))
    assert "request=r1" in _line({"request": "r1"}, is_json=False)


def _line(request: dict[str, str], is_json: bool, **fields) -> str:
    token = REQUEST.set(request)
    try:
        return LineFormatter(is_json).format(record(**fields))
    finally:
        REQUEST.reset(token)


def test_errors_have_their_traceback():
    try:
        raise ValueError("wrong")
    except ValueError:
        entry = record()
        entry.exc_info = sys.exc_info()
    assert "ValueError: wrong" in json.loads(LineFormatter(is_json=True).format(entry))["error"]
    assert "ValueError: wrong" in LineFormatter(is_json=False).format(entry)


def test_request_ids_of_proxies_are_kept_if_they_are_sane():
    assert request_id(b"abc-1") == "abc-1"
    assert request_id(b"a b") != "a b"
    assert len(request_id(None)) == 16
    assert request_id(None) != request_id(None)


def test_answers_have_the_id_of_their_request(server):
    answer = server.client.get("/healthz", headers={"x-request-id": "mine"})
    assert answer.headers["x-request-id"] == "mine"
    assert server.client.get("/healthz").headers["x-request-id"] != "mine"
