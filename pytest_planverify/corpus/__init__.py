"""The labelled corpus of failures: its format, its split, and how well the diagnosis does on it."""
