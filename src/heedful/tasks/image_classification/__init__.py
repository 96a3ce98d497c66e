"""Image classification: saying what an image shows."""
