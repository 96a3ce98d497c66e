"""`heedful tag`: N lines in, N lines out."""

from __future__ import annotations

import click


@click.command()
@click.argument("model")
@click.option("--batch-size", type=int, default=64, show_default=True, help="Texts at a time; does not change results.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
def tag(model: str, batch_size: int, device: str) -> None:
    """Tag words: a line of words between spaces gives a line with as many tags.

    \b
    heedful tag my-tagger < sentences.txt > tags.txt
    """
    from heedful.cli.lines import answer_lines, load_as
    from heedful.pipelines.tagger import Tagger

    pipeline: Tagger = load_as(Tagger, model, device, "tagger")

    def answer(lines: list[str]) -> list[str]:
        return [" ".join(word.tag for word in words) for words in pipeline.tag(lines, batch_size=batch_size)]

    answer_lines(answer)
