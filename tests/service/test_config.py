"""Options by command line, environment and file; passwords that nobody sees."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from oclok.errors import InputError, StorageError
from oclok.service.config import Config, with_password, without_password
from oclok.service.database import Database


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, "-m", "oclok", *command],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_every_option_is_an_environment_variable(tmp_path):
    text = run("serve", "--help", COLUMNS="200").stdout
    for name in Config.__dataclass_fields__:
        assert f"OCLOK_{name.upper()}" in text
    wrong = run("serve", OCLOK_WORKERS="0", OCLOK_STORAGE=f"sqlite:///{tmp_path}/a.db")
    assert wrong.returncode == 2
    assert "workers must be at least 1; got 0" in wrong.stderr
    listed = run("keys", "list", OCLOK_STORAGE=f"sqlite:///{tmp_path}/b.db")
    assert f"{tmp_path}/b.db: there is no such file" in listed.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "90"}, "keep must be"),
        ({"keep": "0d"}, "keep must be"),
        ({"log_format": "xml"}, "log_format"),
        ({"log_level": "loud"}, "log_level"),
        ({"oracle_seconds": 0.0}, "oracle_seconds"),
        ({"max_models": -1}, "max_models"),
        ({"tls_key": "key.pem"}, "tls_certificate"),
    ],
)
def test_options_that_are_wrong(options, message):
    with pytest.raises(InputError, match=message):
        Config(**options)


def test_options_reach_worker_processes(monkeypatch):
    monkeypatch.setenv("OCLOK_CONFIG", "")
    config = Config(port=1, keep="1.5h", root_path="/x")
    config.to_environment()
    assert Config.from_environment() == config
    assert config.keep_seconds == 5400


def test_passwords_come_from_a_file_or_the_environment(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("s3cret/@\n")
    url = "postgresql://me@host/name"
    assert with_password(url, str(tmp_path / "secret")) == (
        "postgresql://me:s3cret%2F%40@host/name"
    )
    assert with_password(url) == url
    monkeypatch.setenv("OCLOK_STORAGE_PASSWORD", "other")
    assert with_password(url) == "postgresql://me:other@host/name"
    assert with_password("postgresql://me:given@host/name") == "postgresql://me:given@host/name"
    assert with_password("sqlite:///x.db") == "sqlite:///x.db"
    with pytest.raises(StorageError, match="password file"):
        with_password(url, str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2@host:x/name", "mysql://me:hunter2@host/name", "me:hunter2@h"]
)
def test_errors_do_not_show_passwords(url):
    assert "hunter2" not in without_password("//" + url)
    with pytest.raises(StorageError) as raised:
        Database(url)
    if "//" in url:
        assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["serve", "--port", "99999"], "port must be from 0 to 65535; got 99999"),
        (["serve", "--storage", "sqlite:///text.db"], "sqlite:///text.db cannot be opened"),
        (["replay", "--storage", "sqlite:///text.db"], "sqlite:///text.db cannot be opened"),
        (["keys", "list"], "sqlite:///oclok.db: there is no such file"),
    ],
)
def test_a_wrong_option_is_one_line_and_leaves_no_file(arguments, message, tmp_path):
    (tmp_path / "text.db").write_text("This is no database. " * 100)
    done = subprocess.run(
        [sys.executable, "-m", "oclok", *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "oclok.db").exists()
