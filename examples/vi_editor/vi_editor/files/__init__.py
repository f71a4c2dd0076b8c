"""Files: read, written, kept apart from what is edited."""
