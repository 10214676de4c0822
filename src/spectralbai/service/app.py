"""The application: its routes, the checks that every request passes, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

from spectralbai.documents import software
from spectralbai.service import models, problems
from spectralbai.service.access import Access
from spectralbai.service.events import EVERY, Events
from spectralbai.service.gate import Gate
from spectralbai.service.lanes import lanes
from spectralbai.service.limits import Limits
from spectralbai.service.metrics import Metrics
from spectralbai.service.readiness import Readiness
from spectralbai.service.routes import ROUTERS
from spectralbai.service.shelf import Shelf
from spectralbai.service.tells import Tells
from spectralbai.study import Studies

PAGE = Path(__file__).parent / "page"
TAGS = [
    {"name": "studies", "description": "Create, list, import, export, stop and delete studies."},
    {"name": "trials", "description": "Ask what to try, tell what came out."},
    {"name": "views", "description": "Where a study stands."},
    {"name": "planning", "description": "Before a study: an instance from tables, and how many trials to expect."},
    {"name": "service", "description": "The service itself."},
]


def make_app(
    studies: Studies, access: Access | None = None, limits: Limits | None = None, *, every: float = EVERY
) -> FastAPI:
    """Returns the service for these studies, an ASGI application. Every `every` seconds it checks for changes that
    listeners are told about."""
    access = Access() if access is None else access
    limits = Limits() if limits is None else limits
    metrics = Metrics()
    app = FastAPI(
        title="spectralbai",
        version=software()["spectralbai"],
        description="Find the best of many related options with the fewest noisy trials: studies over HTTP.",
        openapi_url="/api/openapi.json",
        openapi_tags=TAGS,
        docs_url=None,  # these pages would load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(Gate, access=access, limits=limits, metrics=metrics),
            Middleware(GZipMiddleware, minimum_size=4000, compresslevel=4),  # not for events
        ],
    )
    app.state.shelf = Shelf(studies)
    app.state.lanes = lanes()
    app.state.tells = Tells(app.state.shelf, app.state.lanes["tell"])
    app.state.readiness = Readiness(studies, app.state.lanes["ready"])
    app.state.limits = limits
    app.state.access, app.state.metrics = access, metrics
    app.state.events = Events(studies, every)
    for router in ROUTERS:
        app.include_router(router)
    problems.install(app)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]  # as FastAPI's manual does it
    app.mount("/", StaticFiles(directory=PAGE, html=True), name="page")
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """Returns the OpenAPI document; in it every error is a `ProblemReply`, and tokens are bearer tokens."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=TAGS
        )
        parts = document["components"]
        for unused in ("HTTPValidationError", "ValidationError"):
            parts["schemas"].pop(unused, None)
        parts["schemas"]["ProblemReply"] = models.ProblemReply.model_json_schema()
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}, {}]
        refusal = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemReply"}}}
        for methods in document["paths"].values():
            for each in methods.values():
                each["responses"].setdefault("422", {"description": "The request breaks a stated rule."})
                for code, response in each["responses"].items():
                    if int(code) >= 400:
                        response["content"] = refusal
        app.openapi_schema = document
    return app.openapi_schema
