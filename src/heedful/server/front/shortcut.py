"""A shorter way to the routes that take a JSON body: the framework's takes longer than a short sentence does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from inspect import signature
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.server.front.desk import Desk, json_answer
from heedful.server.front.errors import ApiError
from heedful.server.front.json_bodies import JsonRoute, json_of, parsed


class Shortcut:
    """Takes requests that fit their description straight to what answers them; all others take the framework's way.

    So whatever is wrong with a request is reported in one place. Its whole body is there already (see `Guard`).
    """

    def __init__(self, app: ASGIApp, routes: Iterable[Any], desk: Desk) -> None:
        self.app, self.desk = app, desk
        self.routes = {route.path: _Short(route) for route in routes if _takes_body_and_desk(route)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        route = self.routes.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if route is None:
            await self.app(scope, receive, send)
            return
        message = await receive()
        try:
            route.check_type(scope)
            body = await parsed(route.body, message["body"])
        except (ApiError, ValidationError):
            await self.app(scope, _again(message, receive), send)
            return
        scope["route"] = route.route  # for the metrics
        try:
            answer = await route.answer(body, self.desk)
        except ApiError as error:
            answer = api_error_answer(error)
        await answer(scope, receive, send)


class _Short:
    """A route, its answers, and what its bodies must be."""

    def __init__(self, route: JsonRoute) -> None:
        self.route = route
        self.answer: Callable[[Any, Desk], Awaitable[Response]] = route.endpoint
        self.bodies = TypeAdapter[Any](get_type_hints(route.endpoint, include_extras=True)["body"])

    def check_type(self, scope: Scope) -> None:
        """Raise an error if the body of a request is not said to be JSON."""
        kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise ValidationError.from_exception_data("body", [])

    def body(self, content: bytes) -> Any:
        """What the body of a request says; an error if it does not fit the description."""
        return self.bodies.validate_python(json_of(content))


def _takes_body_and_desk(route: Any) -> bool:
    if not isinstance(route, JsonRoute) or route.dependencies:
        return False
    return list(signature(route.endpoint).parameters) == ["body", "desk"] and route.methods == {"POST"}


def _again(message: Message, receive: Receive) -> Receive:
    """A `receive` that gives a message already taken, and then those that come."""
    taken = [message]

    async def give() -> Message:
        return taken.pop() if taken else await receive()

    return give


def api_error_answer(error: ApiError) -> Response:
    """The answer that reports an error."""
    return json_answer(error.body(), error.kind.status, error.headers)
