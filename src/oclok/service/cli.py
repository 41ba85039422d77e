"""Commands of the service: serve, check, replay, export, evaluate, agents, keys."""
# Tested in tests/service/test_config.py: its commands are run.

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from oclok.errors import InputError, StorageError
from oclok.service.config import Config, with_password

if TYPE_CHECKING:
    from oclok.service.access import Access
    from oclok.service.database import Database
    from oclok.service.lifecycle import Lifecycle

Storage = Annotated[
    str,
    typer.Option(
        help="Where everything is kept: sqlite:///FILE or postgresql://….", envvar="OCLOK_STORAGE"
    ),
]
DEFAULT = Config.storage


def add_commands(app: typer.Typer) -> None:
    """Add the commands of the service to a command line."""
    app.command()(serve)
    app.command()(replay)
    app.command()(check)
    app.command()(export)
    app.command()(evaluate)
    app.add_typer(keys_app, name="keys")
    app.add_typer(agents_app, name="agents")


def serve(demo: bool = False, **options: Any) -> None:
    """Answer decisions over HTTP, with a page at /.

    `oclok serve` keeps everything in oclok.db in this folder. For several machines: `oclok serve
    --storage postgresql://USER@HOST/NAME --workers 4`, with the password in
    OCLOK_STORAGE_PASSWORD or --password-file. Every option is also an environment variable, such
    as OCLOK_MAX_MODELS.
    """
    from oclok.service.server import serve as run

    config = Config(**options)
    if demo:
        from oclok.service import demo as traffic

        traffic.start(f"http://{config.host}:{config.port}")
    run(config)


def _serve_parameters() -> list[inspect.Parameter]:
    """Return one parameter per option of `Config`, and `--demo`."""
    hints, keyword = get_type_hints(Config), inspect.Parameter.KEYWORD_ONLY
    demo = typer.Option("--demo", help="Make a demo agent and send it traffic.")
    return [
        inspect.Parameter("demo", keyword, default=False, annotation=Annotated[bool, demo]),
        *(
            inspect.Parameter(
                each.name,
                keyword,
                default=each.default,
                annotation=Annotated[
                    hints[each.name],
                    typer.Option(help=each.metadata["help"], envvar=f"OCLOK_{each.name.upper()}"),
                ],
            )
            for each in dataclasses.fields(Config)
        ),
    ]


serve.__signature__ = inspect.Signature(_serve_parameters())  # type: ignore[attr-defined]
serve.__annotations__ = {}


def replay(
    agent: Annotated[list[str] | None, typer.Argument(help="Only these agents.")] = None,
    storage: Storage = DEFAULT,
) -> None:
    """Rebuild models from the log and check that every recorded decision comes out again."""
    from oclok.service.log import Log
    from oclok.service.replay import replay as run
    from oclok.threads import use_one_blas_thread

    use_one_blas_thread()
    database = _database(storage)
    names = agent or [row.name for row in Log(database).agents()]
    results = [run(database, name, _show_progress) for name in names]
    for result in results:
        print(result)
    if any(result.differing for result in results):
        raise typer.Exit(1)


def check(storage: Storage = DEFAULT) -> None:
    """Check that no event of any agent is missing, and that snapshots can be read."""
    from oclok.service.replay import check as run

    findings = run(_database(storage))
    for agent, damage in findings.items():
        print(f"{agent}: {damage or 'complete'}")
    if any(findings.values()):
        raise typer.Exit(1)


def export(
    agent: Annotated[str, typer.Argument(help="The name of the agent.")],
    output: Annotated[Path | None, typer.Option(help="The file; AGENT.parquet by default.")] = None,
    storage: Storage = DEFAULT,
) -> None:
    """Write an agent's log as Parquet: one row per arm that was offered."""
    from oclok.service.export import export as run

    path = output or Path(f"{agent}.parquet")
    print(f"{path}: {run(_database(storage), agent, path):,} rows")


def evaluate(
    agent: Annotated[str, typer.Option(help="The name of the agent.")],
    policy: Annotated[str, typer.Option(help="ucb, greedy, thompson or random.")] = "greedy",
    storage: Storage = DEFAULT,
    level: Annotated[float, typer.Option(help="Nominal coverage of the intervals.")] = 0.95,
) -> None:
    """Estimate what another policy would have earned on the second half of an agent's log."""
    from oclok.offline import evaluate as run
    from oclok.offline import read_log

    _database(storage)
    location = with_password(storage, os.environ.get("OCLOK_PASSWORD_FILE"))
    for estimate in run(read_log(location, agent), policy, level):
        print(estimate)


def _show_progress(agent: str, share: float) -> None:
    if sys.stderr.isatty():
        print(f"\r{agent}: {share:.0%} replayed", end="\r", file=sys.stderr, flush=True)


def _database(storage: str, *, create: bool = False) -> Database:
    from oclok.service.database import Database

    path = Path(storage.removeprefix("sqlite:///"))
    if storage.startswith("sqlite:///") and not create and not path.exists():
        raise StorageError(f"{storage}: there is no such file; `oclok serve` makes it")
    database = Database(with_password(storage, os.environ.get("OCLOK_PASSWORD_FILE")))
    database.migrate()
    return database


agents_app = typer.Typer(help="What can be done to an agent.", no_args_is_help=True)
Agent = Annotated[str, typer.Argument(help="The name of the agent.")]


def _lifecycle(storage: str) -> Lifecycle:
    from oclok.service.lifecycle import Lifecycle
    from oclok.service.log import Log

    return Lifecycle(Log(_database(storage)), "command line")


@agents_app.command(name="list")
def list_agents(storage: Storage = DEFAULT) -> None:
    """List all agents: name, state, decisions, events."""
    for row in _lifecycle(storage).log.agents():
        print(f"{row.name}\t{row.state}\t{row.rounds:,} decisions\t{row.last:,} events")


@agents_app.command(name="set")
def set_agent(
    agent: Agent,
    changes: Annotated[
        list[str], typer.Argument(help="Such as deadline=60 or state=paused; values are JSON.")
    ],
    storage: Storage = DEFAULT,
) -> None:
    """Change settings, or the state: active, paused or archived."""
    from pydantic import ValidationError

    from oclok.service.requests import SettingsChange

    parsed = {name: _value(text) for name, _, text in (each.partition("=") for each in changes)}
    try:
        change = SettingsChange(**parsed)
    except ValidationError as reason:
        first = reason.errors()[0]
        raise InputError(f"{first['loc'][0]}: {first['msg']}") from None
    _lifecycle(storage).change(agent, change.model_dump(include=change.model_fields_set))


@agents_app.command()
def reset(agent: Agent, storage: Storage = DEFAULT) -> None:
    """Forget everything that an agent has learned."""
    _lifecycle(storage).reset(agent)


@agents_app.command()
def clone(
    agent: Agent,
    name: Annotated[str, typer.Argument(help="The name of the new agent.")],
    learned: Annotated[bool, typer.Option(help="With the log.")] = True,
    storage: Storage = DEFAULT,
) -> None:
    """Make another agent with the same settings."""
    _lifecycle(storage).clone(agent, name, learned)


@agents_app.command()
def erase(
    agent: Agent,
    arm: Annotated[str | None, typer.Option(help="Id of an arm; JSON for numbers.")] = None,
    decision: Annotated[str | None, typer.Option(help="Id of a decision.")] = None,
    storage: Storage = DEFAULT,
) -> None:
    """Erase all that is known of an arm or a decision."""
    found = None if arm is None else _value(arm)
    print(f"{_lifecycle(storage).erase(agent, found, decision):,} events had it")


@agents_app.command()
def delete(agent: Agent, storage: Storage = DEFAULT) -> None:
    """Delete an agent and everything that is known of it, for good."""
    _lifecycle(storage).delete(agent)


@agents_app.command()
def audit(
    agent: Annotated[str | None, typer.Argument(help="Only this agent.")] = None,
    storage: Storage = DEFAULT,
) -> None:
    """List who did what, latest first."""
    for entry in _lifecycle(storage).trail(agent):
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry["time"]))
        detail = json.dumps(entry["detail"])
        print(f"{when}\t{entry['who']}\t{entry['agent']}\t{entry['action']}\t{detail}")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


keys_app = typer.Typer(help="Keys for those who may use the service.", no_args_is_help=True)


def _access(storage: str, *, create: bool = False) -> Access:
    from oclok.service.access import Access

    return Access(_database(storage, create=create))


@keys_app.command()
def add(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    role: Annotated[list[str], typer.Option(help="decide, learn, read or admin; may be repeated.")],
    agent: Annotated[str | None, typer.Option(help="For this agent only.")] = None,
    storage: Storage = DEFAULT,
) -> None:
    """Make a key and print it; it cannot be seen again."""
    print(_access(storage, create=True).add(name, role, agent))


@keys_app.command(name="list")
def list_keys(storage: Storage = DEFAULT) -> None:
    """List all keys, without their secrets."""
    for key in _access(storage).keys:
        print(f"{key.id}\t{key.name}\t{','.join(sorted(key.roles))}\t{key.agent or 'all agents'}")


@keys_app.command()
def remove(
    number: Annotated[int, typer.Argument(help="The number that `oclok keys list` shows.")],
    storage: Storage = DEFAULT,
) -> None:
    """Remove a key: it is refused within a second."""
    if not _access(storage).remove(number):
        raise InputError(f"there is no key {number}")


#: The commands of the service alone, without what those of the bench need.
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
add_commands(app)
