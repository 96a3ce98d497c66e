"""What the labelling tasks declare."""

from heedful.tasks.declaration import ENCODING, FROM, ROWS, Demo, Evaluation, Option, TaskDeclaration, Training, Verb

HERE = "heedful.tasks.labelling"
SCORES = ("accuracy", "macro F1")
EMBED = Verb("embed", "embeds texts", "heedful.tasks.encoding.verbs:EMBED")
ATTENTION = Verb("attention", "takes texts", "heedful.tasks.direct_verb:ATTENTION")
EXPLAIN = Verb("explain", "takes texts", "heedful.tasks.direct_verb:EXPLAIN")

EVALUATION = Evaluation(
    f"{HERE}.evaluation:evaluate",
    (Option(("--data",), "Classifiers and taggers: labelled text, as for training.", multiple=True), *ROWS),
    needed=("data",),
)

CLASSIFIER = Training(
    "classifier",
    """Learn to label texts, or pairs of texts.

    \b
    heedful train classifier --data train.tsv --out sentiment
    heedful train classifier --data train.tsv --out sentiment --from my-bert --epochs 3
    """,
    f"{HERE}.job:ClassifierData",
    (
        Option(
            ("--data",),
            "Label, tab, text, and perhaps another tab and a second text; also CSV and JSON lines, .gz and .xz.",
            multiple=True,
        ),
        Option(("--valid-data",), "Held-out texts; if not given, some of the texts are held out.", multiple=True),
        ENCODING,
        *ROWS,
        FROM,
    ),
    "heedful classify {} < in.txt",
)

TAGGER = Training(
    "tagger",
    """Learn to tag words.

    \b
    heedful train tagger --data train.conll --out my-tagger
    """,
    f"{HERE}.job:TaggerData",
    (
        Option(
            ("--data",),
            "Word, tab or space, tag, with blank lines between sentences; also JSON lines, .gz and .xz.",
            multiple=True,
        ),
        Option(("--valid-data",), "Held-out text; if not given, some of the text is held out.", multiple=True),
        ENCODING,
        *ROWS,
        FROM,
    ),
    "heedful tag {} < in.txt",
)

TASKS = (
    TaskDeclaration(
        "classification",
        "Text classification",
        f"{HERE}.classifier:Classifier",
        families=("encoder_only",),
        takes="text",
        gives="label",
        verbs=(Verb("classify", "classifies texts", f"{HERE}.verbs:CLASSIFY"), EMBED, ATTENTION, EXPLAIN),
        head="classes",
        placeholder="Type a text; its label appears next to it",
        scores=SCORES,
        training=CLASSIFIER,
        evaluation=EVALUATION,
        demo=Demo(
            "classifier",
            f"{HERE}.demo",
            "which language is a phrase in? phrases generated from the Unicode CLDR",
            "60s",
        ),
    ),
    TaskDeclaration(
        "tagging",
        "Tagging",
        f"{HERE}.tagger:Tagger",
        families=("encoder_only",),
        takes="text",
        gives="spans",
        verbs=(Verb("tag", "tags words", f"{HERE}.verbs:TAG", "Tag the words of texts."), EMBED, ATTENTION, EXPLAIN),
        head="tags",
        placeholder="Type a sentence; each word gets its tag",
        scores=SCORES,
        training=TAGGER,
        evaluation=EVALUATION,
    ),
)
