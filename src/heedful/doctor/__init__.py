"""Whether heedful can work on this machine."""
