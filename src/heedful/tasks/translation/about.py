"""What translation declares."""

from heedful.tasks.declaration import (
    ENCODING,
    FROM,
    ROWS,
    WEIGHTS,
    Demo,
    Evaluation,
    Option,
    TaskDeclaration,
    Training,
    Verb,
)

HERE = "heedful.tasks.translation"
SIDE_ENCODINGS = (
    Option(("--source-encoding",), "The encoding of the source files, if the two sides differ.", "NAME"),
    Option(("--target-encoding",), "The encoding of the target files (the reference).", "NAME"),
)

TRAINING = Training(
    "translation",
    """Learn to translate from two aligned text files.

    \b
    heedful train translation --source train.en --target train.de --out en-de
    heedful train translation --tsv pairs.tsv.gz --out en-de --budget 30m
    heedful train translation --tsv ours.tsv --out ours --from en-de --epochs 3
    heedful train translation --source 'p*.en.gz' --target 'p*.de.gz' --out big --preset translation_base
    heedful train translation --tsv ours.tsv --tsv 'web*.tsv' --weights 1,3 --out en-de
    """,
    f"{HERE}.job:TranslationData",
    (
        Option(("--source",), "Source text: plain, .gz or .xz, or a pattern such as 'part*.en'.", multiple=True),
        Option(("--target",), "Target text, the translation of the source line by line.", multiple=True),
        Option(
            ("--tsv",),
            "Source, tab, target, instead of the two above; also CSV and JSON lines; - is standard input.",
            multiple=True,
        ),
        Option(
            ("--valid-source",), "Held-out source text; if not given, some of the pairs are held out.", multiple=True
        ),
        Option(("--valid-target",), "Held-out target text.", multiple=True),
        Option(("--valid-tsv",), "Held-out pairs as TSV.", multiple=True),
        WEIGHTS,
        Option(("--source-language",), "Read from the file names (train.en.gz) if not given.", "CODE"),
        Option(("--target-language",), "Likewise.", "CODE"),
        ENCODING,
        *SIDE_ENCODINGS,
        *ROWS,
        Option(("--family",), "encoder_decoder, or recurrent, which Transformers replaced.", "NAME"),
        FROM,
    ),
    "heedful translate {} < in.txt > out.txt",
)

EVALUATION = Evaluation(
    f"{HERE}.evaluation:evaluate",
    (
        Option(("--source",), "Translation: source text of the test set."),
        Option(("--reference",), "Translation: the reference translation, line by line."),
        Option(("--tsv",), "Translation: source, tab, reference, instead of the two above."),
        *SIDE_ENCODINGS,
        Option(("--beam",), "Translation: hypotheses kept at each step.", None, default=5, kind=int),
        Option(("--length-penalty",), "Translation: the alpha of the paper.", None, default=0.6, kind=float),
        Option(
            ("--split",),
            "Translation: as for `heedful translate`.",
            None,
            choices=("auto", "sentences", "none"),
            default="auto",
        ),
        Option(
            ("--workers",),
            "Translation: threads, or processes with torch; one per core.",
            None,
            kind=int,
        ),
        Option(("--shortlist",), "Translation: as for `heedful translate`.", None, is_flag=True),
    ),
)

TASKS = (
    TaskDeclaration(
        "translation",
        "Translation",
        f"{HERE}.pipeline:Translator",
        families=("encoder_decoder", "recurrent"),
        takes="text",
        gives="text",
        verbs=(
            Verb("translate", "translates"),
            Verb("alternatives", "translates", f"{HERE}.verbs:ALTERNATIVES"),
            Verb("attention", "takes texts", "heedful.tasks.direct_verb:ATTENTION"),
            Verb("explain", "takes texts", "heedful.tasks.direct_verb:EXPLAIN"),
        ),
        scores=("BLEU",),
        training=TRAINING,
        evaluation=EVALUATION,
        demo=Demo(
            "translation",
            f"{HERE}.demo",
            "dates, amounts, units and lists, generated from the Unicode CLDR",
            "90s",
        ),
    ),
)
