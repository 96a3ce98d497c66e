"""`heedful import`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="import")
@click.argument("folder")
@click.argument("out")
def import_(folder: str, out: str) -> None:
    """Make a heedful model from a folder in Hugging Face's layout.

    FOLDER holds config.json, model.safetensors and, for text, tokenizer.json; its model_type is bert, gpt2, marian, vit
    or xlnet. Nothing in it is executed. Anything missing, left over or not supported is an error, which leaves nothing
    behind. Marian folders have SentencePiece models instead of tokenizer.json: their models cannot take text yet.

    \b
    heedful import all-MiniLM-L6-v2 my-encoder
    """
    from heedful.interop.huggingface import import_folder

    result = import_folder(Path(folder), Path(out))
    for remark in result.remarks:
        click.echo(f"heedful: {remark}", err=True)
    click.echo(f"done: {out} ({result.loaded.config.model.summary()})", err=True)
