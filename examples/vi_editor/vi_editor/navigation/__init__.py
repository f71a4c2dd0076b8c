"""Motions of the cursor."""
