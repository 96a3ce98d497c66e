"""What claims that involve training share: data, small models, and a short course of training."""
