"""`heedful evaluate`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from heedful.cli.alike_remarks import alike_remarks
from heedful.cli.lines import tell
from heedful.cli.options import device_option, engine_option, precision_option, with_options
from heedful.errors import UserError
from heedful.tasks.computing import check_batch_size
from heedful.tasks.declaration import ENCODING, FROM, Option, TaskDeclaration, resolve
from heedful.tasks.registry import all_tasks

BATCH_SIZE = Option(("--batch-size",), "Texts at a time.", None, default=128, kind=int)


def _options() -> Iterator[Option]:
    """The options of all tasks, each name once."""
    names: set[tuple[str, ...]] = set()
    declared = [option for task in all_tasks().values() if task.evaluation for option in task.evaluation.options]
    for option in (*declared, ENCODING, BATCH_SIZE):
        if option.names not in names:
            yield option
        names.add(option.names)


@click.command()
@click.argument("model")
@with_options(_options())
@device_option
@engine_option
@precision_option
@click.option("--json", "as_json", is_flag=True, help="Write the figures as JSON.")
def evaluate(model: str, as_json: bool, **options: Any) -> None:
    """Measure a model on a test set.

    Translation: BLEU, chrF, perplexity, sentences per second. Language models: perplexity and bits per byte over the
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

    name = check_model_folder(Path(model)).task
    evaluation = all_tasks()[name].evaluation
    task = name.replace("_", " ")
    if evaluation is None:
        raise UserError(_cannot_be_evaluated(model, all_tasks()[name]))
    if not all(options[each] for each in evaluation.needed):
        flags = " and ".join(f"--{each.replace('_', '-')}" for each in evaluation.needed)
        raise UserError(f"the task of {model} is {task}: give {flags}")
    own = {option.names[0] for option in evaluation.options}
    if "--shortlist" not in own and options["shortlist"]:
        raise UserError(f"the task of {model} is {task}: --shortlist is for translation")
    from heedful.text.encodings import check_encoding

    check_encoding(options["encoding"])
    check_batch_size(options["batch_size"], "--batch-size")
    with alike_remarks(tell) as told:
        figures, lines = resolve(evaluation.function)(model, options, told)
    click.echo(json.dumps(figures, indent=1, ensure_ascii=False) if as_json else "\n".join(lines))


def _cannot_be_evaluated(model: str, task: TaskDeclaration) -> str:
    """What the model does instead of what is measured, and what can be trained from it."""
    measured = [each for each in all_tasks().values() if each.evaluation]
    kinds = ", ".join(each.title.lower() for each in measured)
    text = f"{model} {task.verbs[0].does}, which `heedful evaluate` does not measure: it measures {kinds}"
    made = [
        each.training.command
        for each in measured
        if each.training and FROM in each.training.options and set(task.families) & set(each.families)
    ]
    if not made:
        return text
    others = f" (or {', '.join(made[1:])})" if made[1:] else ""
    return f"{text}; `heedful train {made[0]} --from {model} ...`{others} makes of it a model to measure"
