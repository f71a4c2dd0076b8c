"""Changes of the text."""
