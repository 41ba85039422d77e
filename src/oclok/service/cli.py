"""Commands of the service: serve, keys."""

from __future__ import annotations

from typing import Annotated

import typer

Storage = Annotated[
    str, typer.Option(help="Where everything is kept: sqlite:///FILE or postgresql://….")
]
DEFAULT = "sqlite:///oclok.db"


def add_commands(app: typer.Typer) -> None:
    """Add the commands of the service to a command line."""
    app.command()(serve)
    app.add_typer(keys_app, name="keys")


def serve(
    storage: Storage = DEFAULT,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(help="Number of processes.")] = 1,
) -> None:
    """Answer decisions over HTTP, with a page at /.

    `oclok serve` keeps everything in oclok.db in this folder. `oclok serve --storage
    postgresql://user:password@host/name --workers 4` is for more than one machine can do.
    """
    from oclok.service.server import serve as run

    print(f"oclok: http://{host}:{port}/ (API: /docs)", flush=True)
    run(storage, host, port, workers)


keys_app = typer.Typer(help="Keys for those who may use the service.", no_args_is_help=True)


@keys_app.command()
def add(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    role: Annotated[list[str], typer.Option(help="decide, learn, read or admin; may be repeated.")],
    agent: Annotated[str | None, typer.Option(help="For this agent only.")] = None,
    storage: Storage = DEFAULT,
) -> None:
    """Make a key and print it; it cannot be seen again."""
    from oclok.service.access import Keys
    from oclok.service.database import Database

    database = Database(storage)
    database.migrate()
    print(Keys(database).add(name, role, agent))


@keys_app.command(name="list")
def list_keys(storage: Storage = DEFAULT) -> None:
    """List all keys, without what is secret."""
    from oclok.service.access import Keys
    from oclok.service.database import Database

    database = Database(storage)
    database.migrate()
    for key in Keys(database).all():
        print(f"{key.id}\t{key.name}\t{','.join(sorted(key.roles))}\t{key.agent or 'all agents'}")


@keys_app.command()
def remove(
    number: Annotated[int, typer.Argument(help="The number that `oclok keys list` shows.")],
    storage: Storage = DEFAULT,
) -> None:
    """Remove a key: it is refused within a second."""
    from oclok.errors import InputError
    from oclok.service.access import Keys
    from oclok.service.database import Database

    database = Database(storage)
    database.migrate()
    if not Keys(database).remove(number):
        raise InputError(f"there is no key {number}")
