"""The page on which a reader follows one token through a model, with the real numbers."""
