"""The measurement of each claim, in a file of its name."""
