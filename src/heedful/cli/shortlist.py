"""`heedful shortlist`."""

from __future__ import annotations

from pathlib import Path

import click

from heedful.cli.options import encoding_option
from heedful.errors import UserError


@click.command()
@click.argument("model")
@click.option("--source", multiple=True, metavar="FILE", help="Source text that the model was trained on.")
@click.option("--target", multiple=True, metavar="FILE", help="Its translation, line by line.")
@click.option("--tsv", multiple=True, metavar="FILE", help="Both in one file, in two columns.")
@encoding_option
def shortlist(
    model: str, source: tuple[str, ...], target: tuple[str, ...], tsv: tuple[str, ...], encoding: str | None
) -> None:
    """Learn which subwords a translation may use, and save them with the model.

    With `heedful translate --shortlist` the output layer then computes only the subwords that are frequent anyway, and
    those that the words of the sentence may need: the larger the vocabulary, the more time this saves. Translations may
    change a little.

    \b
    heedful shortlist en-de --source train.en --target train.de
    heedful translate en-de --shortlist < in.txt > out.txt
    """
    from heedful.model_folder import check_model_folder, check_weights, load_tokenizer
    from heedful.tasks.translation.corpus import ParallelCorpus
    from heedful.tasks.translation.shortlist import learn_shortlist
    from heedful.text.encodings import check_encoding

    if bool(source or target) == bool(tsv):
        raise UserError("give --source and --target, or --tsv")
    folder = Path(model)
    config = check_model_folder(folder)
    if config.task != "translation" or config.family != "encoder_decoder":
        raise UserError(f"{model} is not a Transformer that translates: only these have a shortlist")
    check_encoding(encoding)
    if tsv:
        corpus = ParallelCorpus.from_tsv(tsv, encoding=encoding)
    else:
        corpus = ParallelCorpus.from_files(source, target, encodings=(encoding, encoding))
    tokenizer = load_tokenizer(folder, config, check_weights(folder).metadata)
    learned, share = learn_shortlist(corpus, tokenizer, config.model.vocabulary_size)
    learned.save(folder)
    click.echo(f"{len(learned.frequent_F):,} of {config.model.vocabulary_size:,} subwords are always there.")
    click.echo(
        f"With those that its words call for, a sentence has {100 * share:.2f} % of the subwords of its translation."
    )
    click.echo(f"next: heedful translate {model} --shortlist < in.txt")
