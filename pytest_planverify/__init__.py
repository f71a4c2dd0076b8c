"""Executes the acceptance criteria of a plan and observes what they say."""
