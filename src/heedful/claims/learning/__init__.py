"""What claims that train have in common: data, small models, and a short course of training."""
