"""From a model's logits to hypotheses."""
