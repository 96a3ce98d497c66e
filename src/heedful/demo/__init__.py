"""Demos on built-in data, one file each: `run_demo` trains a model, `show` shows what it has learned."""
