"""The HTTP server: a front process that speaks to clients, and workers that hold the models."""
