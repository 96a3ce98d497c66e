"""`heedful evaluate`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from heedful.errors import UserError


@click.command()
@click.argument("model")
@click.option("--source", metavar="FILE", help="Source text of the test set.")
@click.option("--reference", metavar="FILE", help="Its translation by people, line by line.")
@click.option("--images", metavar="FOLDER", help="Images of the test set, with a sub-folder for each class.")
@click.option("--idx-images", metavar="FILE", help="Images as an idx file.")
@click.option("--idx-labels", metavar="FILE", help="Their labels.")
@click.option("--resolution", metavar="PIXELS", help="Use images at another size than in training: 40, or 40x56.")
@click.option("--beam", type=int, default=5, show_default=True, help="Hypotheses kept at each step.")
@click.option("--length-penalty", type=float, default=0.6, show_default=True, help="The alpha of the paper.")
@click.option("--batch-size", type=int, default=64, show_default=True, help="Lines decoded at a time.")
@click.option("--workers", type=int, help="Processes; by default one for each core.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
@click.option("--json", "as_json", is_flag=True, help="Write the figures as JSON.")
def evaluate(
    model: str,
    source: str | None,
    reference: str | None,
    images: str | None,
    idx_images: str | None,
    idx_labels: str | None,
    resolution: str | None,
    beam: int,
    length_penalty: float,
    batch_size: int,
    workers: int | None,
    device: str,
    as_json: bool,
) -> None:
    """Measure a model on a test set.

    For translation: BLEU, chrF, perplexity, sentences a second. For images: accuracy, macro F1, confusion matrix.

    \b
    heedful evaluate en-de --source test.en --reference test.de
    heedful evaluate my-vit --images test/ --resolution 40
    """
    if images or idx_images or idx_labels:
        from heedful.cli.evaluate_images import show_image_scores

        show_image_scores(model, (images, idx_images, idx_labels), resolution, device, as_json)
        return
    if not source or not reference:
        raise UserError("no test set: give --source and --reference, or --images, or --idx-images and --idx-labels")
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
