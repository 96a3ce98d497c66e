"""`heedful embed`: N lines in, N vectors out."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("model")
@click.option("--out", metavar="FILE.npy", help="Write an array of numpy; without it, a JSON array a line.")
@click.option("--pooling", type=click.Choice(["mean", "class_token"]), help="By default as the model was trained.")
@click.option("--normalize/--no-normalize", default=True, show_default=True, help="Give vectors of length 1.")
@click.option("--batch-size", type=int, default=64, show_default=True, help="Texts at a time; does not change results.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
def embed(model: str, out: str | None, pooling: str | None, normalize: bool, batch_size: int, device: str) -> None:
    """Turn lines of standard input into vectors, with an encoder of any task.

    \b
    heedful embed my-bert --out vectors.npy < sentences.txt
    """
    import numpy as np

    from heedful.cli.lines import answer_lines, input_lines, load_as, remarks_on_lines
    from heedful.files import replacing
    from heedful.pipelines.encoder import Encoder

    pipeline: Encoder = load_as(Encoder, model, device, "encoder")

    def vectors(lines: list[str]) -> np.ndarray:
        return pipeline.embed(lines, pooling=pooling, normalize=normalize, batch_size=batch_size)  # type: ignore[arg-type]

    if out is None:
        answer_lines(lambda lines: [json.dumps(row.tolist()) for row in vectors(lines)])
        return
    groups = [vectors([])]
    for first, lines in input_lines():
        with remarks_on_lines(first):
            groups.append(vectors(lines))
    with replacing(Path(out)) as temporary, temporary.open("wb") as file:
        np.save(file, np.concatenate(groups))
