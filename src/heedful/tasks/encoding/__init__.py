"""Texts as vectors, and what all tasks of an encoder share."""
