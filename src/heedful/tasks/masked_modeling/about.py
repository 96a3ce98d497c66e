"""What masked language modeling declares."""

from heedful.tasks.declaration import ENCODING, FROM, Option, TaskDeclaration, Training, Verb

HERE = "heedful.tasks.masked_modeling"

TRAINING = Training(
    "masked-language-model",
    """Learn to guess hidden words: an encoder to start classifiers and taggers from.

    \b
    heedful train masked-language-model --text sentences.txt --out my-bert
    """,
    f"{HERE}.job:MaskedTextData",
    (
        Option(("--text",), "Text: plain, .gz or .xz, a pattern, or - (standard input).", multiple=True),
        Option(("--valid-text",), "Held-out text; if not given, some of the text is held out.", multiple=True),
        Option(
            ("--document",),
            "What counts as a document, by default a line; long ones are cut.",
            None,
            choices=("line", "file"),
        ),
        Option(("--whole-words",), "Hide all subwords of a word together.", None, is_flag=True),
        ENCODING,
        FROM,
    ),
    'heedful fill {} "The [MASK] barks."',
)

TASKS = (
    TaskDeclaration(
        "masked_language_model",
        "Hidden words",
        f"{HERE}.pipeline:MaskedLanguageModel",
        families=("encoder_only",),
        takes="masked text",
        gives="words",
        verbs=(
            Verb("fill", "guesses hidden words", f"{HERE}.verbs:FILL"),
            Verb("embed", "embeds texts", "heedful.tasks.encoding.verbs:EMBED"),
            Verb("attention", "takes texts", "heedful.tasks.direct_verb:ATTENTION"),
            Verb("explain", "takes texts", "heedful.tasks.direct_verb:EXPLAIN"),
        ),
        head="masked",
        placeholder="Type a sentence with [MASK] where a word is to be guessed",
        scores=("accuracy",),
        training=TRAINING,
    ),
)
