"""The description of the API, with the limits and the models of the running server."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from heedful.server.front.libretranslate import LANGUAGES, LibreRequest, language_pairs
from heedful.server.front.pool import WorkerPool
from heedful.server.front.schemas import LIMIT, MODELS

# Limit -> the keyword of JSON Schema for it.
KEYWORDS = {"characters": "maxLength", "texts": "maxItems", "tokens": "maximum"}


def describe(app: FastAPI, pool: WorkerPool) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if not app.openapi_schema:
        document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        document["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        document["security"] = [{"bearer": []}, {"key": []}] if pool.settings.keys else []
        # Described by hand, since it may come as a form too.
        schemas = document["components"]["schemas"]
        schemas["LibreRequest"] = LibreRequest.model_json_schema(ref_template="#/components/schemas/{model}")
        _fill_in(document, pool)
        app.openapi_schema = document
    return app.openapi_schema


def _fill_in(part: Any, pool: WorkerPool) -> None:
    """Replace marks with numbers and names."""
    if isinstance(part, dict):
        if LIMIT in part:
            name = part.pop(LIMIT)
            part[KEYWORDS[name]] = getattr(pool.limits, name)
        if MODELS in part:
            verbs = part.pop(MODELS)
            names = [card.name for card in pool.models.values() if set(verbs) & set(card.verbs)]
            _choose_from(part, names)
        if LANGUAGES in part:
            side = part.pop(LANGUAGES)
            pairs = language_pairs(pool.models.values())
            _choose_from(part, ["auto", *(a for a, _ in pairs)] if side == "source" else [b for _, b in pairs])
        for each in part.values():
            _fill_in(each, pool)
    elif isinstance(part, list):
        for each in part:
            _fill_in(each, pool)


def _choose_from(part: dict[str, Any], names: list[str]) -> None:
    """Say which names a string may be, if there are any."""
    if names:
        optional = [None] if "anyOf" in part else []
        part["enum"] = [*dict.fromkeys(names), *optional]
