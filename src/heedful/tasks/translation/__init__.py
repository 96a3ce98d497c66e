"""Translation: from aligned files to a model that translates lines."""
