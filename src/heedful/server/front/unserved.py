"""What clients of other servers ask for that is not served here, and what to do instead."""

from __future__ import annotations

COMPLETIONS = "the models here continue a text and know no chat: POST the whole text as `prompt` to /v1/completions"
LANGUAGES = "GET /languages, and name the source language in /translate (or `auto`, where one model has the target)"
UNSERVED = {
    "/v1/chat/completions": COMPLETIONS,
    "/v1/responses": COMPLETIONS,
    "/v1/messages": COMPLETIONS,
    "/chat/completions": COMPLETIONS,
    "/completions": "POST to /v1/completions: set the client's base URL to that of this server with /v1 at its end",
    "/embeddings": "POST to /v1/embeddings: set the client's base URL to that of this server with /v1 at its end",
    "/models": "GET /v1/models, or /api/models, which tells more",
    "/v1/audio/transcriptions": "no model here takes sound",
    "/v1/images/generations": "no model here makes images: POST an image to /api/classify to have it labelled",
    "/v1/moderations": "POST to /api/classify, with a model that was trained for it",
    "/detect": f"no model here tells languages: {LANGUAGES}",
    "/translate_file": "send the text of the file to /translate, or use the command `heedful translate`",
    "/suggest": "suggestions are not kept: use /api/alternatives to choose among translations",
    "/frontend/settings": f"this server has its own page at /: {LANGUAGES}",
    "/docs": "the description of the API is at /openapi.json, and a page for people at /",
    "/health": "use /healthz",
}


def advice(path: str) -> str:
    """What to tell whoever asks for a path that is not there."""
    known = UNSERVED.get(path.rstrip("/"))
    return f"{path} is not served here: {known}" if known else "there is no such path: /openapi.json describes all"
