"""The measurement of each claim, in a file with its name."""
