"""What was done, to be undone."""
