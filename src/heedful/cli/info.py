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
    from rich.text import Text

    from heedful.machine.torch_needed import has_torch
    from heedful.model_folder import check_model_folder, check_weights, load_model_folder, load_tokenizer
    from heedful.models.parameter_count import parameter_table
    from heedful.tasks.engines import engine_in_words
    from heedful.tasks.label_list import label_list

    folder = Path(model)
    config, weights = check_model_folder(folder), check_weights(folder)
    if has_torch():  # which can tell whether the weights fit the settings
        load_model_folder(folder)
    rows = {"task": config.task.replace("_", " "), "family": config.family, "model": config.model.summary()}
    if config.task == "translation":
        rows["languages"] = f"{config.source_language or '?'} to {config.target_language or '?'}"
        rows["training lines"] = str(config.training_lines or "not recorded: taken to be one sentence each")
        rows["longest input"] = f"{config.model.max_length} subwords; longer texts are translated in pieces"
    if config.document or config.task == "language_model":
        rows["documents"] = {"line": "lines", "file": "files"}.get(
            config.document or "", "not recorded: taken to be files"
        )
    if config.family == "encoder_only":
        rows["vectors"] = config.model.vectors_summary()
    if config.task == "classification":
        single = "single texts, or pairs" if config.model.embedding.segments > 1 else "single texts"
        rows["reads"] = "pairs of texts" if config.pairs_only else single
    if config.labels:
        rows["labels"] = f"{len(config.labels)}: {label_list(config.labels[:10])}"
    if config.has_tokenizer:
        rows["vocabulary"] = f"{load_tokenizer(folder, config, weights.metadata).vocabulary_size:,}"
    rows["engine"] = engine_in_words(config)
    rows["made with"] = f"heedful {config.heedful_version}"
    table = Table(show_header=False)
    for name, value in {**rows, **parameter_table(weights.shapes)}.items():
        table.add_row(name, Text(value))
    Console(soft_wrap=True).print(table)
