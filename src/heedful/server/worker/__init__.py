"""A process that holds all models and computes, on one thread, for many requests at a time."""
