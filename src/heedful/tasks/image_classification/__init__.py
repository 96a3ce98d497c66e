"""Image classification: what an image shows."""
