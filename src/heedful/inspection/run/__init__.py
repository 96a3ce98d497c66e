"""How a training run went."""
