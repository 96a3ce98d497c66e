"""What is served, and the state of the server."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from heedful.server.front.desk import TheDesk, errors, json_answer
from heedful.server.front.metrics import CONTENT_TYPE, Metrics
from heedful.server.front.schemas import HealthAnswer, ModelsAnswer

router = APIRouter(tags=["service"])


@router.get("/api/models", response_model=ModelsAnswer, responses=errors())
async def models(desk: TheDesk) -> Response:
    """All models that are served."""
    return json_answer({"models": [asdict(card) for card in desk.pool.models.values()]})


@router.get("/healthz", response_model=HealthAnswer, responses=errors())
async def health(desk: TheDesk) -> Response:
    """Whether the server can work: 503 while it shuts down or has no worker; `degraded` while some do not answer."""
    pool = desk.pool
    answering, wanted = len(pool.responsive), len(pool.workers)
    able = any(worker.ready for worker in pool.workers) and not pool.closing
    status = "unavailable" if not able else "ok" if answering == wanted else "degraded"
    return json_answer({"status": status, "workers": answering, "workers_wanted": wanted}, 200 if able else 503)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={**errors(), 200: {"description": "Figures in the text format of Prometheus."}},
)
async def metrics(request: Request, desk: TheDesk) -> Response:
    """Figures for Prometheus."""
    counted: Metrics = request.app.state.metrics
    text = counted.text(desk.pool.load, desk.pool.restarts, await desk.pool.states())
    return PlainTextResponse(text, media_type=CONTENT_TYPE)
