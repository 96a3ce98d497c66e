"""The settings of models, as they appear in config.json: what describes a model, without anything that computes."""
