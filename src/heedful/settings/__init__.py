"""The settings of models, as they stand in config.json: what describes a model, without anything that computes."""
