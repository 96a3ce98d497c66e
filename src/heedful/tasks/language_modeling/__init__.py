"""Language modeling: from plain text to a model that continues it."""
