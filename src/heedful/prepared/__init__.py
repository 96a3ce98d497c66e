"""Data that is prepared once and used again: its folder, its rows, what is held out, batches."""
