"""The description of the API, with the limits of the running server."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from heedful.server.front.libretranslate import LibreRequest
from heedful.server.settings import Limits

# What a marked schema is limited by, in the words of JSON Schema.
KEYWORDS = {"characters": "maxLength", "texts": "maxItems", "tokens": "maximum"}


def describe(app: FastAPI, limits: Limits) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if not app.openapi_schema:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        document["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        document["security"] = [{}, {"bearer": []}, {"key": []}]
        # Described by hand, since it may come as a form too.
        schemas = document["components"]["schemas"]
        schemas["LibreRequest"] = LibreRequest.model_json_schema(ref_template="#/components/schemas/{model}")
        _put_limits(document, limits)
        app.openapi_schema = document
    return app.openapi_schema


def _put_limits(part: Any, limits: Limits) -> None:
    """Replace the marks of `schemas.py` by numbers."""
    if isinstance(part, dict):
        name = part.pop("x-limit", None)
        if name:
            part[KEYWORDS[name]] = getattr(limits, name)
        for each in part.values():
            _put_limits(each, limits)
    elif isinstance(part, list):
        for each in part:
            _put_limits(each, limits)
