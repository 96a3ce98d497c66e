"""Labels: the class of a text, or the tag of each of its words."""
