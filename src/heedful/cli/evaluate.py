"""`heedful evaluate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from heedful.cli.options import encoding_option, precision_option, row_options, split_option
from heedful.errors import UserError

Options = dict[str, Any]


@click.command()
@click.argument("model")
@click.option("--source", metavar="FILE", help="Translation: source text of the test set.")
@click.option("--reference", metavar="FILE", help="Translation: its translation by people, line by line.")
@click.option("--tsv", metavar="FILE", help="Translation: source, tab, reference, in place of the two above.")
@click.option("--text", metavar="FILE", multiple=True, help="Language models: the text to predict.")
@click.option("--data", metavar="FILE", multiple=True, help="Classifiers and taggers: labelled text, as for training.")
@encoding_option
@row_options
@click.option("--images", metavar="FOLDER", help="Images: a sub-folder for each class.")
@click.option("--idx-images", metavar="FILE", help="Images as an idx file, in place of a folder.")
@click.option("--idx-labels", metavar="FILE", help="Their labels.")
@click.option("--resolution", metavar="PIXELS", help="Use images at another size than in training: 40, or 40x56.")
@click.option("--beam", type=int, default=5, show_default=True, help="Hypotheses kept at each step.")
@click.option("--length-penalty", type=float, default=0.6, show_default=True, help="The alpha of the paper.")
@split_option("Translation: as for `heedful translate`.")
@click.option("--batch-size", type=int, default=128, show_default=True, help="Lines decoded at a time.")
@click.option("--workers", type=int, help="Processes; by default one for each core.")
@precision_option("Translation: int8 computes with weights of 8 bits.")
@click.option("--shortlist", is_flag=True, help="Translation: as for `heedful translate`.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
@click.option("--json", "as_json", is_flag=True, help="Write the figures as JSON.")
def evaluate(model: str, as_json: bool, **options: Any) -> None:
    """Measure a model on a test set.

    Translation: BLEU, chrF, perplexity, sentences a second. Language models: perplexity and bits per byte over the
    whole text. Classifiers, of images too, and taggers: accuracy, precision, recall and F1 of each label, their
    averages, and which label was taken for which; of tags such as B-PERSON, I-PERSON and O also those of entities.

    \b
    heedful evaluate en-de --source test.en --reference test.de
    heedful evaluate en-de --tsv test.tsv
    heedful evaluate my-gpt --text test.txt
    heedful evaluate sentiment --data test.tsv
    heedful evaluate my-vit --images test/ --resolution 40
    """
    from heedful.model_folder import check_model_folder

    task = check_model_folder(Path(model)).task
    if task not in EVALUATIONS:
        raise UserError(f"{model}: there is no evaluation of the task {task!r}")
    needed, evaluation = EVALUATIONS[task]
    for name in needed:
        if not options[name]:
            flags = " and ".join(f"--{each}" for each in needed)
            raise UserError(f"the task of {model} is {task.replace('_', ' ')}: give {flags}")
    if task != "translation" and (options["shortlist"] or options["precision"] != "fp32"):
        name = task.replace("_", " ")
        raise UserError(f"the task of {model} is {name}: --precision and --shortlist are for translation")
    from heedful.text.encodings import check_encoding

    check_encoding(options["encoding"])
    figures, lines = evaluation(model, options)
    click.echo(json.dumps(figures, indent=1, ensure_ascii=False) if as_json else "\n".join(lines))


def _translation(model: str, options: Options) -> tuple[dict[str, Any], list[str]]:
    from heedful.cli.files import read_aligned, read_pairs
    from heedful.cli.translate import number_of_workers
    from heedful.decoding.options import DecodingOptions
    from heedful.tasks.translation.evaluation import evaluate_translation
    from heedful.tasks.translation.lines import LineSettings
    from heedful.text.row_layout import RowOptions

    source, reference, tsv = (options[name] for name in ("source", "reference", "tsv"))
    if bool(source and reference) == bool(tsv) or bool(source) != bool(reference):
        raise UserError(f"the task of {model} is translation: give --source and --reference, or --tsv")
    layout = RowOptions(options["columns"], options["header"], options["delimiter"])
    encoding = options["encoding"]
    sources, references = read_pairs(tsv, encoding, layout) if tsv else read_aligned(source, reference, encoding)
    search = DecodingOptions(beam=options["beam"], length_penalty=options["length_penalty"])
    settings = LineSettings(
        model,
        search,
        options["device"],
        options["precision"],
        options["shortlist"],
        batch_size=options["batch_size"],
        split=options["split"],
    )

    def remark(number: int, text: str) -> None:
        click.echo(f"heedful: line {number} of {tsv or source} {text}", err=True)

    workers = number_of_workers(options["workers"], options["device"])
    result = evaluate_translation(settings, workers, sources, references, remark)
    figures = asdict(result)
    del figures["translations"]
    return figures, [
        f"BLEU        {result.bleu:.2f}  {result.bleu_signature}",
        f"chrF        {result.chrf:.2f}  {result.chrf_signature}",
        f"perplexity  {result.perplexity:.3f}  per subword of the references",
        f"speed       {result.sentences / result.seconds:.1f} sentences/s "
        f"({result.sentences:,} in {result.seconds:.1f} s, start of the workers included)",
    ]


def _language_model(model: str, options: Options) -> tuple[dict[str, Any], list[str]]:
    from heedful.cli.files import read_whole_texts
    from heedful.tasks.language_modeling.pipeline import LanguageModel
    from heedful.tasks.loading import load

    pipeline = load(model, options["device"])
    assert isinstance(pipeline, LanguageModel)
    result = pipeline.score(read_whole_texts(options["text"], options["encoding"]))
    figures = {**asdict(result), "perplexity": result.perplexity, "bits_per_byte": result.bits_per_byte}
    return figures, [
        f"loss           {result.loss:.4f}  nats per token, {result.tokens:,} tokens",
        f"perplexity     {result.perplexity:.3f}  per token",
        f"bits per byte  {result.bits_per_byte:.4f}  {result.bytes:,} bytes",
    ]


def _labels(model: str, options: Options) -> tuple[dict[str, Any], list[str]]:
    from heedful.tasks.label_tables import label_lines
    from heedful.tasks.labelling.classifier import Classifier
    from heedful.tasks.labelling.evaluation import evaluate_labels
    from heedful.tasks.labelling.tagger import Tagger
    from heedful.tasks.loading import load
    from heedful.text.row_layout import RowOptions

    layout = RowOptions(options["columns"], options["header"], options["delimiter"])
    layout.check()
    pipeline = load(model, options["device"])
    assert isinstance(pipeline, Classifier | Tagger)

    def remark(text: str) -> None:
        click.echo(text, err=True)

    result = evaluate_labels(pipeline, options["data"], options["batch_size"], remark, options["encoding"], layout)
    return asdict(result), [
        f"accuracy  {result.accuracy:.4f}  of {result.count:,} labels",
        f"macro F1  {result.macro_f1:.4f}",
        *label_lines(result),
    ]


def _images(model: str, options: Options) -> tuple[dict[str, Any], list[str]]:
    from heedful.cli.files import parse_resolution
    from heedful.tasks.image_classification.evaluation import evaluate_images
    from heedful.tasks.image_classification.files import open_images
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.label_tables import label_lines
    from heedful.tasks.loading import load

    source = open_images(options["images"], options["idx_images"], options["idx_labels"])
    if source is None:
        raise UserError(f"{model} is an image classifier: give --images, or --idx-images and --idx-labels")
    resolution = parse_resolution(options["resolution"])
    pipeline = load(model, options["device"])
    assert isinstance(pipeline, ImageClassifier)

    def remark(name: str, reason: str) -> None:
        click.echo(f"heedful: {name} is left out: {reason}", err=True)

    result, seconds = evaluate_images(pipeline, source, resolution, remark)
    return {**asdict(result), "seconds": seconds}, [
        f"accuracy  {result.accuracy:.4f}  of {result.count:,} images",
        f"macro F1  {result.macro_f1:.4f}",
        f"speed     {result.count / seconds:,.0f} images/s",
        *label_lines(result),
    ]


# By the task in config.json: the options that are needed, and what measures.
EVALUATIONS: dict[str, tuple[tuple[str, ...], Callable[[str, Options], tuple[dict[str, Any], list[str]]]]] = {
    "translation": ((), _translation),
    "language_model": (("text",), _language_model),
    "image_classifier": ((), _images),
    "classification": (("data",), _labels),
    "tagging": (("data",), _labels),
}
