"""`heedful info`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("model")
def info(model: str) -> None:
    """Show what a model folder holds.

    \b
    heedful info en-de
    """
    from rich.console import Console
    from rich.table import Table

    from heedful.model_folder import load_model_folder
    from heedful.models.parameter_count import parameter_table

    network, tokenizer, config = load_model_folder(Path(model))
    settings = config.model
    table = Table(show_header=False)
    rows = {
        "family": config.family,
        "languages": f"{config.source_language or '?'} to {config.target_language or '?'}",
        "encoder": f"{settings.encoder.num_layers} layers, {settings.encoder.norm}-norm",
        "decoder": f"{settings.decoder.num_layers} layers, {settings.decoder.norm}-norm",
        "width": f"{settings.width}, {settings.encoder.attention.num_heads} heads",
        "positions": settings.positions,
        "longest input": f"{settings.max_length} subwords",
        "vocabulary": f"{tokenizer.vocabulary_size:,} subwords",
        "trained with": f"heedful {config.heedful_version}",
        **parameter_table(network),
    }
    for name, value in rows.items():
        table.add_row(name, str(value))
    Console(soft_wrap=True).print(table)
