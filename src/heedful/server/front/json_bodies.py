"""JSON bodies, read strictly: what programs could read in different ways, and what is not text, is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import HTTPException
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from heedful.config import parse_json
from heedful.server.front.errors import INVALID, ApiError

# Bytes of a body from which it takes long to parse.
LARGE = 2**16
Result = TypeVar("Result")


async def parsed(parse: Callable[[bytes], Result], content: bytes) -> Result:
    """What `parse` makes of a body: in a thread if the body is large, so that other requests do not wait for it."""
    if len(content) > LARGE:
        return await asyncio.to_thread(parse, content)
    return parse(content)


def json_of(content: bytes) -> Any:
    """What a body holds."""
    try:
        return parse_json(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ApiError(INVALID, f"the body is not valid UTF-8, from byte {error.start + 1} on") from None
    except json.JSONDecodeError as error:
        raise ApiError(INVALID, f"the body is not valid JSON, from character {error.pos + 1} on") from None
    except ValueError as error:
        raise ApiError(INVALID, f"the body cannot be read: {error}") from None


class JsonRequest(Request):
    """A request whose body is read by `json_of`."""

    async def json(self) -> Any:
        """What the body holds; the framework lets only errors of this kind through."""
        try:
            return await parsed(json_of, await self.body())
        except ApiError as error:
            raise HTTPException(error.kind.status, error.message) from None


class JsonRoute(APIRoute):
    """A route that takes JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function that answers a request."""
        answer = super().get_route_handler()

        async def read_strictly(request: Request) -> Response:
            return await answer(JsonRequest(request.scope, request.receive))

        return read_strictly
