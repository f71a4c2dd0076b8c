"""Criteria by kind, one file each, evaluated in the parent process outside of any session."""
