"""What routes share: the desk that hands requests to the workers, JSON answers, and their description."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request
from starlette.responses import Response

from heedful.server.front.errors import BAD_REQUEST, KINDS, NOT_FOUND, ApiError
from heedful.server.front.events import MEDIA_TYPE
from heedful.server.front.pool import Answer, WorkerPool
from heedful.server.front.schemas import ErrorAnswer
from heedful.server.messages import ModelCard, ModelRequest
from heedful.tasks.registry import all_verbs


class Desk:
    """Where routes hand in the requests of their clients."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool, self.limits = pool, pool.limits
        self.started = time.time()

    def request(self, model: str | None, verb: str, inputs: Sequence[Any], **options: Any) -> ModelRequest:
        """A request for the model of that name, or for the only one that can do it."""
        return ModelRequest(choose_model(self.pool.models, model, verb), verb, inputs, options)

    async def run(self, model: str | None, verb: str, inputs: Sequence[Any], **options: Any) -> Answer:
        """The answer to a request."""
        return await self.pool.run(self.request(model, verb, inputs, **options))

    def stream(self, model: str | None, verb: str, inputs: Sequence[Any], **options: Any) -> AsyncGenerator[Any]:
        """The answer to a request as it comes."""
        return self.pool.stream(self.request(model, verb, inputs, **options))


def choose_model(models: Mapping[str, ModelCard], name: str | None, verb: str) -> str:
    """The model of that name; without a name the only one that can do what is asked."""
    able = [card.name for card in models.values() if verb in card.verbs]
    if name is None:
        if len(able) == 1:
            return able[0]
        if not able:
            raise ApiError(NOT_FOUND, f"no model that {all_verbs()[verb].does} is served here")
        raise ApiError(BAD_REQUEST, f'several models could do this: set "model" to one of {", ".join(able)}')
    check_model(models, name)
    if name not in able:
        others = f": try {', '.join(able)}" if able else ""
        raise ApiError(BAD_REQUEST, f"{name} is not a model that {all_verbs()[verb].does}{others}")
    return name


def check_model(models: Mapping[str, ModelCard], name: str) -> None:
    """Refuse a name that no model has."""
    if name not in models:
        raise ApiError(NOT_FOUND, f"there is no model {name!r} here: the models are {', '.join(models)}")


async def desk(request: Request) -> Desk:
    """The desk of the running server; a coroutine, since plain functions would be run in a thread each time."""
    found: Desk = request.app.state.desk
    return found


# A route gets the desk through a parameter of this type.
TheDesk = Annotated[Desk, Depends(desk)]


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer as JSON; half a surrogate pair, which is not Unicode text, is escaped."""
    content = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return Response(content, status, headers, media_type="application/json")


def errors(*statuses: int, model: Any = ErrorAnswer) -> dict[int | str, dict[str, Any]]:
    """The description of a route's errors: those that all routes have, and these."""
    common = (400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 504)
    return {status: {"model": model, "description": KINDS[status].meaning} for status in (*common, *statuses)}


def event_stream(description: str, *names: str) -> dict[int | str, dict[str, Any]]:
    """The description of an answer that may also come as events of these names (or of none)."""
    data = {"type": "string", "contentMediaType": "application/json"}
    properties = {"data": data, "event": {"type": "string", "enum": list(names)}} if names else {"data": data}
    item = {"type": "object", "required": list(properties), "properties": properties}
    return {200: {"description": description, "content": {MEDIA_TYPE: {"itemSchema": item}}}}
