"""What a model is trained to do: collating, loss and metrics."""
