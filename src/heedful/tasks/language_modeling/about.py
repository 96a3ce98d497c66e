"""What language modeling declares."""

from heedful.tasks.declaration import ENCODING, FROM, WEIGHTS, Demo, Evaluation, Option, TaskDeclaration, Training, Verb

HERE = "heedful.tasks.language_modeling"

TRAINING = Training(
    "language-model",
    """Learn to continue text.

    \b
    heedful train language-model --text book.txt --out my-gpt
    heedful train language-model --text 'corpus/*.txt.gz' --out my-gpt --budget 1h --preset language_small
    heedful train language-model --text book.txt --out my-xlnet --family xlnet
    heedful train language-model --text letters.txt --out my-letters --from my-gpt
    heedful train language-model --text books.txt --text 'web/*.txt' --weights 1,2 --out my-gpt
    """,
    f"{HERE}.job:TextData",
    (
        Option(
            ("--text",),
            "Text: plain, .gz or .xz, a pattern such as 'books/*.txt', or - (standard input).",
            multiple=True,
        ),
        Option(("--valid-text",), "Held-out text; if not given, some of the text is held out.", multiple=True),
        WEIGHTS,
        Option(
            ("--document",),
            "What counts as a document, by default a file; no document sees another.",
            None,
            choices=("file", "line"),
        ),
        Option(
            ("--tokenizer",),
            "What counts as a token, by default a byte-level subword.",
            None,
            choices=("subwords", "characters"),
        ),
        ENCODING,
        Option(
            ("--family",),
            "The kind of model, by default decoder_only; xlnet learns to predict tokens in any order.",
            None,
            choices=("decoder_only", "xlnet"),
        ),
        FROM,
    ),
    'heedful generate {} "Once upon a time"',
)

TASKS = (
    TaskDeclaration(
        "language_model",
        "Text completion",
        f"{HERE}.pipeline:LanguageModel",
        families=("decoder_only", "xlnet"),
        takes="prompt",
        gives="text",
        verbs=(
            Verb("generate", "generates text"),
            Verb("attention", "takes texts", "heedful.tasks.direct_verb:ATTENTION"),
            Verb("explain", "takes texts", "heedful.tasks.direct_verb:EXPLAIN"),
        ),
        scores=("bits per byte",),
        training=TRAINING,
        evaluation=Evaluation(
            f"{HERE}.evaluation:evaluate",
            (
                Option(("--text",), "Language models: the text to predict.", multiple=True),
                Option(
                    ("--document",),
                    "Language models: what counts as a document, by default the same as in training.",
                    None,
                    choices=("file", "line"),
                ),
            ),
            needed=("text",),
        ),
        demo=Demo(
            "language-model",
            f"{HERE}.demo",
            "the Python language reference, which comes with Python",
            "75s",
        ),
    ),
)
