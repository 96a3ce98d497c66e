"""Foreign formats, one small mapping file each."""
