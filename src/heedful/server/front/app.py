"""The application: routes, errors, and its description."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

import heedful
from heedful.server.front import libretranslate, openai_routes, pages, service_routes, text_routes, translate_routes
from heedful.server.front.errors import BROKEN, INVALID, KINDS, ApiError, Kind
from heedful.server.front.guard import Guard
from heedful.server.front.metrics import Metrics
from heedful.server.front.openapi import describe
from heedful.server.front.pool import WorkerPool
from heedful.server.front.requests import Desk

DESCRIPTION = "Transformers as a service: translation, text generation, classification, tagging, embedding, attention."


def build_app(pool: WorkerPool) -> Guard:
    """The application, on workers that run."""
    app = FastAPI(title="heedful", version=heedful.__version__, description=DESCRIPTION, docs_url=None, redoc_url=None)
    app.state.desk = Desk(pool)
    app.state.metrics = Metrics()
    for module in (service_routes, translate_routes, text_routes, openai_routes, libretranslate, pages):
        app.include_router(module.router)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _broken)
    app.openapi = lambda: describe(app, pool)  # type: ignore[method-assign]
    return Guard(app, pool.settings, app.state.metrics)


def _answer(error: ApiError) -> JSONResponse:
    return JSONResponse(error.body(), error.kind.status, error.headers)


async def _api_error(request: Request, error: Any) -> JSONResponse:
    return _answer(error)


async def _invalid(request: Request, error: Any) -> JSONResponse:
    """The first few things that do not fit, and where; what was sent is not sent back."""
    found = [f"{_place(each['loc'][1:])}: {each['msg']}" for each in error.errors()]
    return _answer(ApiError(INVALID, "; ".join(dict.fromkeys(found[:5]))))


def _place(location: Any) -> str:
    """Where in the body: names and numbers; which of several forms was tried tells nobody anything."""
    parts = [str(part) for part in location if isinstance(part, int) or part.isidentifier()]
    return ".".join(part for part in parts if part[:1].islower() or part.isdigit()) or "body"


async def _http_error(request: Request, error: Any) -> JSONResponse:
    kind = KINDS.get(error.status_code, Kind(error.status_code, "error", ""))
    return _answer(ApiError(kind, str(error.detail), dict(error.headers or {})))


async def _broken(request: Request, error: Exception) -> JSONResponse:
    return _answer(ApiError(BROKEN, "a fault of the server's: its log says more"))
