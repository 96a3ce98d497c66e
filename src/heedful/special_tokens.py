"""The three ids that no text encodes to: the vocabulary begins with them."""

PAD = 0
START = 1
END = 2
