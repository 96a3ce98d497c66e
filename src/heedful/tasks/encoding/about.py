"""The declaration of an encoder without a head: it comes from elsewhere, and is not trained here."""

from heedful.tasks.declaration import TaskDeclaration, Verb

HERE = "heedful.tasks.encoding"

TASKS = (
    TaskDeclaration(
        "encoder",
        "Similarity",
        f"{HERE}.pipeline:Encoder",
        families=("encoder_only",),
        takes="texts",
        gives="vectors",
        verbs=(
            Verb("embed", "embeds texts", f"{HERE}.verbs:EMBED"),
            Verb("attention", "takes texts", "heedful.tasks.direct_verb:ATTENTION"),
            Verb("explain", "takes texts", "heedful.tasks.direct_verb:EXPLAIN"),
        ),
        placeholder="One text per line; the table says how alike they are",
    ),
)
