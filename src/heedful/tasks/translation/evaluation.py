"""How good a model's translations of a test set are, and how fast it makes them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import sacrebleu

from heedful.decoding.options import DecodingOptions
from heedful.errors import UserError
from heedful.tasks.computing import Computing
from heedful.tasks.declaration import Measured, Options, Remark
from heedful.tasks.remarks import remarks
from heedful.tasks.translation.corpus import read_pairs
from heedful.tasks.translation.lines import LineSettings, cached_translator, number_of_workers, translate_texts
from heedful.tasks.translation.scoring import score_pairs
from heedful.text.encodings import check_encoding
from heedful.text.row_options import RowOptions
from heedful.text.whole_files import read_aligned


@dataclass(frozen=True)
class TranslationScores:
    """Scores on a test set; the signatures say exactly how BLEU and chrF were computed."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    perplexity: float
    sentences: int
    seconds: float
    translations: list[str]


def evaluate_translation(
    settings: LineSettings,
    workers: int,
    sources: list[str],
    references: list[str],
    remark: Callable[[int, str], None],
    places: Sequence[str] | None = None,
) -> TranslationScores:
    """Translate the sources and compare with the references; `remark` receives numbers of odd pairs, with remarks.

    `places` says where each pair is, for errors.
    """
    settings = settings.of_this_version()
    # Blank sources are not scored: they stay blank.
    asked = [number for number, source in enumerate(sources) if source.strip()]
    if not asked:
        raise UserError("all sources are blank: there is nothing to measure")
    with remarks() as found:
        scores = score_pairs(
            cached_translator(settings),
            [sources[n] for n in asked],
            [references[n] for n in asked],
            alpha=0.0,  # only log-probabilities are used
            names=[places[n] if places else f"pair {n + 1}" for n in asked],
        )
    for place, text in found:
        remark(asked[place] + 1, text)
    for number, (source, reference) in enumerate(zip(sources, references, strict=True), 1):
        if bool(source.strip()) != bool(reference.strip()):
            if source.strip():
                remark(number, "has a blank reference: BLEU and chrF compare its translation with nothing")
            else:
                remark(number, "has a blank source: it counts as a blank translation in BLEU and chrF")
    translations: list[str] = []
    texts = [text.replace("\n", " ") for text in sources]  # each is a line
    started = time.monotonic()
    translate_texts(settings, workers, texts, lambda lines, _: translations.extend(lines), remark)
    seconds = time.monotonic() - started
    bleu, chrf = sacrebleu.BLEU(), sacrebleu.CHRF()
    bleu_score = bleu.corpus_score(translations, [references]).score
    chrf_score = chrf.corpus_score(translations, [references]).score
    tokens = sum(len(each.token_scores) for each in scores)
    perplexity = math.exp(-sum(each.log_probability for each in scores) / tokens)
    return TranslationScores(
        bleu_score,
        str(bleu.get_signature()),
        chrf_score,
        str(chrf.get_signature()),
        perplexity,
        sum(bool((source + reference).strip()) for source, reference in zip(sources, references, strict=True)),
        seconds,
        translations,
    )


def evaluate(model: str, options: Options, remark: Remark) -> Measured:
    """Measure a translation model as the command line asks."""
    source, reference, tsv = (options[name] for name in ("source", "reference", "tsv"))
    if bool(source and reference) == bool(tsv) or bool(source) != bool(reference):
        raise UserError(f"the task of {model} is translation: give --source and --reference, or --tsv")
    layout = RowOptions(options["columns"], options["header"], options["delimiter"])
    encoding, of_source, of_target = (options[f"{side}encoding"] for side in ("", "source_", "target_"))
    check_encoding(of_source, "--source-encoding")
    check_encoding(of_target, "--target-encoding")
    if tsv and (of_source or of_target):
        raise UserError("--source-encoding and --target-encoding are for --source and --reference: give --encoding")
    if tsv:
        sources, references, places = read_pairs(tsv, encoding, layout, remark)
    else:
        encodings = of_source or encoding, of_target or encoding
        sources, references = read_aligned(source, reference, remark, encodings)
        places = [f"line {number} of {source}" for number in range(1, len(sources) + 1)]
    search = DecodingOptions(beam=options["beam"], length_penalty=options["length_penalty"])
    computing = Computing(options["device"], options["engine"], options["precision"])
    names = ("shortlist", "batch_size", "split")
    settings = LineSettings(model, search, computing, **{name: options[name] for name in names})
    workers = number_of_workers(options["workers"], options["device"])
    result = evaluate_translation(
        settings, workers, sources, references, lambda number, text: remark(f"{places[number - 1]} {text}"), places
    )
    figures = asdict(result)
    del figures["translations"]
    return figures, [
        f"BLEU        {result.bleu:.2f}  {result.bleu_signature}",
        f"chrF        {result.chrf:.2f}  {result.chrf_signature}",
        f"perplexity  {result.perplexity:.3f}  per subword of the references",
        f"speed       {result.sentences / result.seconds:.1f} sentences/s "
        f"({result.sentences:,} in {result.seconds:.1f} s, start of the workers included)",
    ]
