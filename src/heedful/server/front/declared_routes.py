"""Routes that tasks declare: texts in, and for each text what the task gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter
from pydantic import create_model
from starlette.responses import Response

from heedful.server.front.desk import TheDesk, errors, json_answer
from heedful.server.front.json_bodies import JsonRoute
from heedful.server.front.limits import listed
from heedful.server.front.schemas import Strict, Text, Texts, model_name
from heedful.server.front.text_schemas import ClassifyAnswer, TagAnswer, TextAnswer
from heedful.tasks.declaration import Gives, Verb
from heedful.tasks.registry import all_tasks

router = APIRouter(route_class=JsonRoute)
ANSWERS: dict[Gives, Any] = {"text": TextAnswer, "label": ClassifyAnswer, "spans": TagAnswer}


def _route(verb: Verb) -> Callable[..., Awaitable[Response]]:
    """The function that answers requests for a verb."""
    request: Any = create_model(
        f"{verb.name.title().replace('_', '')}Request",
        __base__=Strict,
        __doc__="Texts, or one text.",
        model=(str | None, model_name(verb.name)),
        text=(Text | Texts, ...),
    )

    async def answer(body: Any, desk: TheDesk) -> Response:
        found = await desk.run(body.model, verb.name, listed(body.text, desk.limits))
        return json_answer({"results": found.values, "remarks": found.remarks})

    answer.__annotations__ = {"body": request, "desk": TheDesk, "return": Response}
    answer.__name__, answer.__doc__ = verb.name, verb.summary
    return answer


for task in all_tasks().values():
    for verb in task.verbs:
        if verb.summary:
            router.add_api_route(
                f"/api/{verb.name}",
                _route(verb),
                methods=["POST"],
                response_model=ANSWERS[task.gives],
                responses=errors(),
                tags=["texts and images"],
            )
