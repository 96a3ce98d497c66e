"""The process that speaks HTTP: it checks requests, gives them to workers, and knows nothing of torch."""
