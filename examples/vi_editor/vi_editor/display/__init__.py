"""The text as rows of a screen."""
