"""Revisions of a plan after a failure: strategies, the edits that they propose, and their effects."""
