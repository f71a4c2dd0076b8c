"""The brief of one failed todo, for an agent or a person."""

from planner.brief.page import Consequences, write_brief

__all__ = ["Consequences", "write_brief"]
