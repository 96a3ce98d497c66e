"""What training on many GPUs takes: memory, traffic and time, by closed forms and by a measured step."""
