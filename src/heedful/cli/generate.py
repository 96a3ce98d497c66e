"""`heedful generate`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from heedful.cli.lines import tell
from heedful.cli.options import computing_options, repetition_options
from heedful.cli.text_input import TextInput, text_input
from heedful.errors import UserError
from heedful.tasks.computing import Computing
from heedful.tasks.remarks import remarks

if TYPE_CHECKING:
    from heedful.tasks.language_modeling.generation import GenerationOptions
    from heedful.tasks.language_modeling.pipeline import LanguageModel


@click.command()
@click.argument("model")
@text_input("[PROMPT]...")
@click.option("--max-tokens", type=int, default=200, show_default=True, help="The most tokens to generate.")
@click.option(
    "--temperature", type=float, default=0.8, show_default=True, help="Below 1 is less random; 0 is the likeliest text."
)
@click.option("--top-k", type=int, help="Only from the K likeliest tokens.")
@click.option("--top-p", type=float, help="Only from the likeliest tokens that make up this share.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same text.")
@click.option("--samples", type=int, default=1, show_default=True, help="Texts to generate, separated by blank lines.")
@click.option("--stop", multiple=True, metavar="TEXT", help="Stop before this text; can be repeated.")
@repetition_options
@click.option("--interactive", is_flag=True, help="Ask for one prompt after another.")
@click.option("--lines", is_flag=True, help="Each line is a prompt, whose continuation ends with the line.")
@computing_options
def generate(
    model: str, given: TextInput, interactive: bool, lines: bool, computing: Computing, **options: Any
) -> None:
    """Continue a text, printing it as it is generated.

    Without PROMPT, the prompt is all of --input or of standard input, without the newline at its end, or nothing if
    that is a terminal. With --lines each line gives one line, or as many as --samples; blank lines stay blank. A prompt
    longer than the model's context is cut to its last half context; a text that fills the context continues from its
    last half.

    \b
    heedful generate my-gpt "Once upon a time"
    heedful generate my-gpt "ROMEO:" --samples 3 --top-p 0.9 --stop "JULIET:"
    heedful generate my-gpt --lines < prompts.txt > continued.txt
    heedful generate my-gpt --interactive
    """
    from heedful.tasks.language_modeling.generation import GenerationOptions
    from heedful.tasks.language_modeling.pipeline import LanguageModel
    from heedful.tasks.loading import load_with

    if interactive and (given.is_given or lines):
        raise UserError("--interactive asks for prompts: give none, and neither --input nor --lines")
    settings = GenerationOptions(**options)
    pipeline = load_with(model, computing)
    if not isinstance(pipeline, LanguageModel):
        raise UserError(f"{model} holds no language model: its task is {pipeline.config.task!r}")
    if interactive:
        _converse(pipeline, settings)
        return
    if lines:
        _answer_lines(pipeline, given, settings)
        return
    prompts = [""] if given.waits_for_a_terminal and not given.is_given else given.whole_texts("a prompt")
    for number, prompt in enumerate(prompts):
        if number:
            click.echo()
        _write(pipeline, prompt, settings)


def _answer_lines(pipeline: LanguageModel, given: TextInput, settings: GenerationOptions) -> None:
    from heedful.cli.lines import answer_lines

    settings = replace(settings, stop=(*settings.stop, "\n"))

    def answer(first: int, prompts: list[str]) -> list[str]:
        found = pipeline.generate(prompts, settings, first_index=first - 1)
        pairs = zip(prompts, found, strict=True)
        return [text.replace("\r", " ") if prompt.strip() else "" for prompt, texts in pairs for text in texts]

    answer_lines(given, answer, settings.samples)


def _write(pipeline: LanguageModel, prompt: str, settings: GenerationOptions) -> None:
    with remarks() as found:
        if settings.samples == 1:
            for piece in pipeline.stream(prompt, settings):
                click.echo(piece, nl=False)
                sys.stdout.flush()
            click.echo()
        else:
            click.echo("\n\n".join(pipeline.generate(prompt, settings)))
    for _, remark in found:
        tell(f"the prompt {remark}")


def _converse(pipeline: LanguageModel, settings: GenerationOptions) -> None:
    while True:
        try:
            prompt = click.prompt("prompt", prompt_suffix="> ", default="", show_default=False, err=True)
        except click.exceptions.Abort:
            click.echo(err=True)
            return
        _write(pipeline, prompt, settings)
