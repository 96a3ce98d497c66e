"""Masked language modeling: from plain text to an encoder that guesses hidden words."""
