"""Training in several processes: a model is spread over them from outside, and does not know it."""
