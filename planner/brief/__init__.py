"""Briefs: what an agent or a person needs to know to work on one todo, as Markdown."""
