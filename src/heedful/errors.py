"""The one kind of error that is the user's to fix."""


class UserError(ValueError):
    """A mistake in what the user gave: its text says what is wrong, where, and what to do."""


class DamagedModelError(UserError):
    """A model computes something that is not a number, which is not the mistake of whoever asks it."""


class LostProcessError(UserError):
    """Another process of the run hangs or is gone: who notices first says so, even where only one process speaks."""

    def __init__(self, text: str, first: bool) -> None:
        super().__init__(text)
        self.first = first


def not_numbers(what: str) -> UserError:
    """The error where something that a model computes is NaN or infinite."""
    return DamagedModelError(
        f"the model's {what} are not numbers (NaN), or infinite: its weights are damaged, or training diverged"
    )
