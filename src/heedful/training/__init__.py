"""The training loop and what it needs to stop and continue."""
