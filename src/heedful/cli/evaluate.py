"""`heedful evaluate`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click


@click.command()
@click.argument("model")
@click.option("--source", required=True, metavar="FILE", help="Source text of the test set.")
@click.option("--reference", required=True, metavar="FILE", help="Its translation by people, line by line.")
@click.option("--beam", type=int, default=5, show_default=True, help="Hypotheses kept at each step.")
@click.option("--length-penalty", type=float, default=0.6, show_default=True, help="The alpha of the paper.")
@click.option("--batch-size", type=int, default=64, show_default=True, help="Lines decoded at a time.")
@click.option("--workers", type=int, help="Processes; by default one for each core.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
@click.option("--json", "as_json", is_flag=True, help="Write the figures as JSON.")
def evaluate(
    model: str,
    source: str,
    reference: str,
    beam: int,
    length_penalty: float,
    batch_size: int,
    workers: int | None,
    device: str,
    as_json: bool,
) -> None:
    """Measure a model on a test set: BLEU, chrF, perplexity, sentences a second.

    \b
    heedful evaluate en-de --source test.en --reference test.de
    """
    from pathlib import Path

    from heedful.cli.files import read_aligned
    from heedful.cli.translate import number_of_workers
    from heedful.decoding.options import DecodingOptions
    from heedful.evaluation import evaluate_translation
    from heedful.line_translation import LineSettings
    from heedful.model_folder import check_model_folder

    check_model_folder(Path(model))
    sources, references = read_aligned(source, reference)
    options = DecodingOptions(beam=beam, length_penalty=length_penalty)
    settings = LineSettings(model, options, device, batch_size=batch_size)

    def remark(number: int, text: str) -> None:
        click.echo(f"heedful: line {number} of {source} {text}", err=True)

    result = evaluate_translation(settings, number_of_workers(workers, device), sources, references, remark)
    if as_json:
        figures = asdict(result)
        del figures["translations"]
        click.echo(json.dumps(figures, indent=1))
        return
    click.echo(f"BLEU        {result.bleu:.2f}  {result.bleu_signature}")
    click.echo(f"chrF        {result.chrf:.2f}  {result.chrf_signature}")
    click.echo(f"perplexity  {result.perplexity:.3f}  per subword of the references")
    click.echo(
        f"speed       {result.sentences / result.seconds:.1f} sentences/s "
        f"({result.sentences:,} in {result.seconds:.1f} s, start of the workers included)"
    )
