"""Briefs: what an agent or a person needs to know to work on one todo, as Markdown."""

from planner.brief.page import (
    CHARACTERS_PER_TOKEN,
    PAGE_TOKENS,
    Consequences,
    edit_in_short,
    likeliest_change,
    write_brief,
    write_task,
)

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "PAGE_TOKENS",
    "Consequences",
    "edit_in_short",
    "likeliest_change",
    "write_brief",
    "write_task",
]
