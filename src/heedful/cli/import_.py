"""`heedful import`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="import")
@click.argument("folder")
@click.argument("out")
def import_(folder: str, out: str) -> None:
    """Make a heedful model of a folder in Hugging Face's layout.

    FOLDER holds config.json, model.safetensors and, for text, tokenizer.json. Nothing in it is executed. A tensor
    that is missing or left over is an error.

    \b
    heedful import opus-mt-en-de my-en-de
    """
    from heedful.interop.huggingface import import_folder

    result = import_folder(Path(folder), Path(out))
    for remark in result.remarks:
        click.echo(f"heedful: {remark}", err=True)
    click.echo(f"done: {out} ({result.loaded.config.model.summary()})", err=True)
