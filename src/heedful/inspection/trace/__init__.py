"""Every intermediate tensor of a model by its name, and other tensors put in its place."""
