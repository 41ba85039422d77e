"""The web application: routes, access, limits, metrics, and work in the background."""
# Tested in tests/service/test_limits.py: every request goes through it.

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from importlib import import_module

from fastapi import FastAPI

from oclok import __version__
from oclok.service import openapi, problems
from oclok.service.access import Access
from oclok.service.background import Background
from oclok.service.config import Config
from oclok.service.database import Database
from oclok.service.limits import Limits
from oclok.service.metrics import Metrics
from oclok.service.page import page_routes
from oclok.service.routes import routes
from oclok.service.server import exit_in_time
from oclok.service.service import Service


def create_app(config: Config | str) -> FastAPI:
    """Return the application for a storage URL or options; the database is migrated if need be."""
    if isinstance(config, str):
        config = Config(storage=config)
    for name in ("sklearn.gaussian_process.kernels", "sklearn.tree"):
        import_module(name)  # takes seconds that a decision would wait
    database = Database(config.database_url)
    database.migrate()
    service = Service(database, config)
    access = Access(database)
    metrics = Metrics(service)
    background = Background(service, access)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        exit_in_time()
        background.start()
        yield
        background.stop()
        database.close()

    app = FastAPI(
        title="oclok",
        version=__version__,
        description="Decide sets under constraints, and learn from what comes of them.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's own page loads its scripts from elsewhere
        redoc_url=None,
        root_path=config.root_path,
    )
    app.state.service = service
    problems.install(app)
    openapi.install(app)
    calls = routes(service, access, metrics, background)
    app.router.routes += calls.routes  # `include_router` would match each request twice
    app.include_router(page_routes())
    app.add_middleware(Limits, access=access, metrics=metrics)
    return app
