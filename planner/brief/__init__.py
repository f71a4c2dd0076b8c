"""The brief of one failed todo, for an agent or a person."""

from planner.brief.page import Consequences, edit_in_short, write_brief

__all__ = ["Consequences", "edit_in_short", "write_brief"]
