"""The application: routes, errors, and its description."""

from __future__ import annotations

import sys
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import heedful
from heedful.server.front import (
    declared_routes,
    libretranslate,
    openai_routes,
    pages,
    service_routes,
    text_routes,
    translate_routes,
)
from heedful.server.front.desk import Desk
from heedful.server.front.errors import (
    BAD_REQUEST,
    INVALID,
    KINDS,
    NOT_ALLOWED,
    NOT_FOUND,
    REQUEST,
    ApiError,
    Kind,
    broken,
    misfits,
)
from heedful.server.front.guard import Guard
from heedful.server.front.metrics import Metrics
from heedful.server.front.openapi import describe
from heedful.server.front.pool import WorkerPool
from heedful.server.front.shortcut import Shortcut, api_error_answer
from heedful.server.front.unserved import advice
from heedful.server.messages import FAULT

DESCRIPTION = "Transformers as a service: translation, text generation, classification, tagging, embedding, attention."

ROUTES = (service_routes, translate_routes, text_routes, declared_routes, openai_routes, libretranslate, pages)


def build_app(pool: WorkerPool) -> Guard:
    """The application, on top of running workers."""
    app = FastAPI(
        title="heedful",
        version=heedful.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.desk = desk = Desk(pool)
    app.state.metrics = Metrics()
    for module in ROUTES:
        app.include_router(module.router)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _broken)
    app.openapi = lambda: describe(app, pool)  # type: ignore[method-assign]
    routes = [route for module in ROUTES for route in module.router.routes]
    # Inside the handling of faults, and before routes are looked up.
    app.add_middleware(Shortcut, routes=routes, desk=desk)
    posts = {route.path for route in routes if "POST" in route.methods}
    return Guard(app, pool.settings, app.state.metrics, posts)


async def _api_error(request: Request, error: Any) -> Response:
    return api_error_answer(error)


async def _invalid(request: Request, error: Any) -> Response:
    found = error.errors()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return api_error_answer(ApiError(INVALID, "send JSON, with the header `Content-Type: application/json`"))
    return api_error_answer(ApiError(INVALID, misfits(found, 1)))


async def _http_error(request: Request, error: Any) -> Response:
    kind = KINDS.get(error.status_code, Kind(error.status_code, "error", ""))
    message = "the body cannot be read as JSON" if kind is BAD_REQUEST else str(error.detail)
    if kind is NOT_FOUND:
        message = advice(request.scope["path"])
    elif kind is NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow") or (error.headers or {}).get("allow", "another method")
        message = f"{request.method} is not for {request.scope['path']}: use {allowed}"
    return api_error_answer(ApiError(kind, message, dict(error.headers or {})))


async def _broken(request: Request, error: Exception) -> Response:
    print(f"heedful: request {REQUEST.get()} failed, as told below", file=sys.stderr, flush=True)
    return api_error_answer(broken(FAULT))
