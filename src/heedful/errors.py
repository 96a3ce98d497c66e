"""The one kind of error that is the user's to mend."""


class UserError(ValueError):
    """A mistake in what the user gave: its text says what is wrong, where, and what to do."""
