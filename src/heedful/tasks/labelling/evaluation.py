"""How good a classifier or a tagger is on labelled text."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from heedful.errors import UserError
from heedful.tasks.classification_metrics import LabelEvaluation, label_evaluation
from heedful.tasks.computing import Computing
from heedful.tasks.declaration import Measured, Options, Remark
from heedful.tasks.label_tables import label_lines
from heedful.tasks.labelling.classifier import Classifier
from heedful.tasks.labelling.entity_metrics import are_entity_tags, entity_evaluation
from heedful.tasks.labelling.files import LabelledExample, LabelledFiles, LabelUnit
from heedful.tasks.labelling.tagger import Tagger
from heedful.tasks.loading import load_with
from heedful.tasks.remarks import remarks
from heedful.tasks.unknown_labels import LabelNumbers, unknown_line
from heedful.text.row_options import RECOGNISED, RowOptions


def evaluate_labels(
    pipeline: Classifier | Tagger,
    patterns: Sequence[str],
    batch_size: int,
    remark: Callable[[str], None],
    encoding: str | None = None,
    row_options: RowOptions = RECOGNISED,
) -> LabelEvaluation:
    """Label the texts of some files and compare with their own labels; `remark` receives remarks on odd lines."""
    is_tagger = isinstance(pipeline, Tagger)
    with tempfile.TemporaryDirectory() as spool_folder:
        unit: LabelUnit = "word" if is_tagger else "text"
        files = LabelledFiles.from_patterns(tuple(patterns), unit, Path(spool_folder), encoding, row_options)
        for text in files.read_as():
            remark(text)

        def tell(rule: str, action: str, *, file: str, line: int) -> None:
            remark(f"line {line} of {file} was {action}: {rule}")

        examples = list(files.examples(tell, remark))
    if not examples:
        raise UserError(f"{', '.join(patterns)}: there is no labelled text to measure on")
    labels = pipeline.config.labels
    numbers = LabelNumbers(labels)
    placed = (pair for each in examples for pair in zip(each.labels, each.places(), strict=True))
    wanted = np.array([numbers.number(label, place) for label, place in placed])
    numbers.check()
    if numbers.unknown:
        remark(unknown_line(numbers.unknown, len(wanted)))
    with remarks() as remarked:
        answers = _answers(pipeline, examples, batch_size)
    number_of = {label: number for number, label in enumerate(labels)}
    found = np.array([number_of[label] for each in answers for label in each])
    for text, count in Counter(text for _, text in dict.fromkeys(remarked)).items():
        remark(f"{count:,} of {len(examples):,} texts: the first {text}")
    result = replace(label_evaluation(wanted, found, numbers.names), unknown=numbers.unknown)
    if is_tagger and are_entity_tags(labels):
        result = replace(result, entities=entity_evaluation([example.labels for example in examples], answers))
    return result


def _answers(pipeline: Classifier | Tagger, examples: list[LabelledExample], batch_size: int) -> list[list[str]]:
    """The labels found for each example."""
    if isinstance(pipeline, Tagger):
        tagged = pipeline.tag([example.texts for example in examples], batch_size=batch_size)
        return [[word.tag for word in sentence] for sentence in tagged]
    texts = [each.texts[0] if len(each.texts) == 1 else (each.texts[0], each.texts[1]) for each in examples]
    return [[each.label] for each in pipeline.classify(texts, batch_size=batch_size)]


def evaluate(model: str, options: Options, remark: Remark) -> Measured:
    """Measure a classifier or a tagger as the command line asks."""
    layout = RowOptions(options["columns"], options["header"], options["delimiter"])
    layout.check()
    pipeline = load_with(model, Computing(options["device"], options["engine"], options["precision"]))
    assert isinstance(pipeline, Classifier | Tagger)
    result = evaluate_labels(pipeline, options["data"], options["batch_size"], remark, options["encoding"], layout)
    return asdict(result), [
        f"accuracy  {result.accuracy:.4f}  of {result.count:,} labels",
        f"macro F1  {result.macro_f1:.4f}",
        *label_lines(result),
    ]
