"""Text files and what they become: lines, rows, clean text, tokens."""
