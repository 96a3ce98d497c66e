"""The web page, from a fixed table of files: nothing in a request ever becomes a path."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from heedful.server.front.errors import NOT_FOUND, ApiError

SERVER_PAGE, VIEWER = "heedful.server", "heedful.inspection"
TYPES = {".js": "text/javascript", ".css": "text/css"}
# Name -> package that has it in its folder `page`, and type.
STATIC = {
    file.name: (package, TYPES[Path(file.name).suffix])
    for package in (SERVER_PAGE, VIEWER)
    for file in (files(package) / "page").iterdir()
    if Path(file.name).suffix in TYPES
}

router = APIRouter(include_in_schema=False)


def _file(package: str, name: str, media_type: str) -> Response:
    file: Any = files(package) / "page" / name
    if not file.is_file():
        raise ApiError(NOT_FOUND, f"there is no {name}")
    headers = {"Cache-Control": "no-cache"}
    return Response(file.read_bytes(), media_type=f"{media_type}; charset=utf-8", headers=headers)


@router.get("/")
async def index() -> Response:
    """The page."""
    return _file(SERVER_PAGE, "index.html", "text/html")


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """A file of the page."""
    if name not in STATIC:
        raise ApiError(NOT_FOUND, "there is no such file")
    package, media_type = STATIC[name]
    return _file(package, name, media_type)
