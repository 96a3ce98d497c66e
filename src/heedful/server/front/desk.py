"""What routes share: the workers, and JSON answers."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from heedful.server.front.errors import KINDS
from heedful.server.front.events import MEDIA_TYPE
from heedful.server.front.models import choose_model
from heedful.server.front.pool import Answer, Order, WorkerPool
from heedful.server.front.schemas import ErrorAnswer


class Desk:
    """Where routes hand in their orders."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool, self.limits = pool, pool.limits
        self.started = time.time()

    def order(self, model: str | None, verb: str, inputs: Sequence[Any], **options: Any) -> Order:
        """An order for the model of that name, or for the only one that can do it."""
        return Order(choose_model(self.pool.models, model, verb), verb, inputs, options)

    async def run(self, model: str | None, verb: str, inputs: Sequence[Any], **options: Any) -> Answer:
        """The answer to an order."""
        return await self.pool.run(self.order(model, verb, inputs, **options))

    def stream(self, model: str | None, verb: str, inputs: Sequence[Any], **options: Any) -> AsyncGenerator[Any]:
        """The answer to an order as it comes."""
        return self.pool.stream(self.order(model, verb, inputs, **options))


async def desk(request: Request) -> Desk:
    """The desk of the running server; a coroutine, since plain functions would be run in a thread each time."""
    found: Desk = request.app.state.desk
    return found


def json_answer(value: Any) -> Response:
    """An answer as JSON; half a surrogate pair, which is not Unicode text, is escaped."""
    return Response(json.dumps(value, ensure_ascii=True, separators=(",", ":")), media_type="application/json")


def errors(*statuses: int, model: Any = ErrorAnswer) -> dict[int | str, dict[str, Any]]:
    """The description of errors, for routes that may answer with these besides those that all have."""
    common = (400, 401, 403, 404, 408, 413, 422, 429, 500, 503, 504)
    return {status: {"model": model, "description": KINDS[status].meaning} for status in (*common, *statuses)}


def event_stream(description: str, *names: str) -> dict[int | str, dict[str, Any]]:
    """The description of an answer that may also come as events of these names (or of none)."""
    data = {"type": "string", "contentMediaType": "application/json"}
    properties = {"data": data, "event": {"type": "string", "enum": list(names)}} if names else {"data": data}
    item = {"type": "object", "required": list(properties), "properties": properties}
    return {200: {"description": description, "content": {MEDIA_TYPE: {"itemSchema": item}}}}
