"""The parts that models are built from; nothing here knows of models."""
