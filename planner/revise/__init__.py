"""Revision of a plan after a failure: strategies that propose typed edits, and their application."""
