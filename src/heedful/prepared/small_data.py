"""A warning if there is too little to learn from."""

FEW_EXAMPLES = 1_000
# About as much as that many lines hold.
FEW_CHARACTERS = 50_000


def warning_of_few(count: int, what: str, enough: int = FEW_EXAMPLES) -> list[str]:
    """A warning about this many training examples, if they are few."""
    if count >= enough:
        return []
    return [f"warning: only {count:,} {what} to train on: with fewer than {enough:,} a model learns little but them"]
