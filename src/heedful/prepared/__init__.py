"""Data that is prepared once and reused: its folder, its rows, what is held out, batches."""
