"""`heedful serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heedful.cli.options import computing_options
from heedful.errors import UserError

if TYPE_CHECKING:
    from heedful.server.settings import Limits

MEBIBYTE = 2**20


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 means all.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 means any free one.",
)
@click.option("--workers", type=int, help="Processes that compute; by default one for each core.")
@click.option("--api-key-file", metavar="FILE", help="Serve only clients that send one of the keys, one per line.")
@click.option(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    help="Also answer requests for this host name, and from its pages; '*' means all names. Can be repeated.",
)
@click.option(
    "--timeout", type=float, default=60.0, show_default=True, help="The longest a request may take, in seconds."
)
@click.option(
    "--worker-timeout",
    type=float,
    help="Seconds after which a worker that does not answer is replaced; by default 3/4 of --timeout.",
)
@click.option("--queue", type=int, default=256, show_default=True, help="The most texts waiting or under way, in all.")
@click.option("--max-texts", type=int, default=128, show_default=True, help="The most texts in one request.")
@click.option("--max-characters", type=int, default=20_000, show_default=True, help="The most characters in one text.")
@click.option("--max-tokens", type=int, default=4096, show_default=True, help="The most tokens that a sample may have.")
@click.option("--max-body", type=int, default=16, show_default=True, help="The largest request, in mebibytes.")
@click.option(
    "--max-connections", type=int, default=1000, show_default=True, help="The most clients connected at a time."
)
@computing_options
def serve(models: tuple[str, ...], host: str, port: int, **options: Any) -> None:
    """Serve models over HTTP: an API, described in /openapi.json, and a web page.

    Clients know a model by the name of its folder, or by another name if it is given as NAME=FOLDER. Clients of
    OpenAI's completions and embeddings and of LibreTranslate work unchanged.

    \b
    heedful serve en-de
    heedful serve en-de my-gpt mood=runs/classifier-7 --port 9000
    """
    from heedful.server.settings import ServerSettings

    if options["workers"] is not None and options["workers"] < 1:
        raise UserError(f"--workers is {options['workers']}, but must be at least 1")
    settings = ServerSettings(
        named(models),
        options["workers"],
        options["computing"],
        _keys(options["api_key_file"]),
        _limits(options),
        hosts=options["allow_host"],
    )
    try:
        from heedful.server.front.serve import serve as run
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "pydantic", "starlette"):
            raise
        raise UserError(f"serving needs {error.name}, which is not installed: pip install 'heedful[serve]'") from None
    run(settings, host, port)


def _limits(options: dict[str, Any]) -> Limits:
    """What a server accepts, from the options of the command."""
    from heedful.server.settings import Limits

    if options["worker_timeout"] is None:
        options["worker_timeout"] = 0.75 * options["timeout"]
    for name in (
        "timeout",
        "worker_timeout",
        "queue",
        "max_texts",
        "max_characters",
        "max_tokens",
        "max_body",
        "max_connections",
    ):
        if not 0 < options[name] < float("inf"):
            raise UserError(f"--{name.replace('_', '-')} is {options[name]}, but must be above 0, and finite")
    if options["max_texts"] > options["queue"]:
        raise UserError(f"--max-texts is {options['max_texts']}, more than --queue, which is {options['queue']}")
    return Limits(
        body_bytes=options["max_body"] * MEBIBYTE,
        characters=options["max_characters"],
        texts=options["max_texts"],
        queue=options["queue"],
        seconds=options["timeout"],
        tokens=options["max_tokens"],
        worker_seconds=options["worker_timeout"],
        connections=options["max_connections"],
    )


def named(models: tuple[str, ...]) -> dict[str, str]:
    """Model folders, by the names that clients use."""
    found: dict[str, str] = {}
    for given in models:
        name, equals, folder = given.partition("=")
        if not equals or Path(given).is_dir():
            name, folder = Path(given).resolve().name, given
        if not name or not folder:
            raise UserError(f"{given!r} is not a model: write FOLDER, or NAME=FOLDER")
        if name in found:
            raise UserError(f"two models have the name {name!r}: give one another name, as in NAME={folder}")
        found[name] = folder
    return found


def _keys(file: str | None) -> tuple[str, ...]:
    if file is None:
        return ()
    try:
        lines = Path(file).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the API keys in {file}: {error}") from None
    keys = tuple(line.strip() for line in lines if line.strip())
    if not keys:
        raise UserError(f"{file} holds no API key: write one per line")
    return keys
