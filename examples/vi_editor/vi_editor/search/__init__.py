"""Patterns: found and replaced."""
