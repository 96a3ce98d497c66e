"""What users hold: a loaded model with the verbs of its task."""
