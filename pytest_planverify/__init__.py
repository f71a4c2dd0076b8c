"""Executes the acceptance criteria of a plan and observes what they say.

PYTEST_DONT_REWRITE: nothing here is a test, and sessions find these modules already imported.
"""
