"""From files to batches of token ids."""
