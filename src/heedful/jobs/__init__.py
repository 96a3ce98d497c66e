"""What can be trained: one file per job, from its files to prepared data and a task."""
