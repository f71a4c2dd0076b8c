"""What an agent or a person is told about one failed todo."""

from planner.brief.page import write_brief

__all__ = ["write_brief"]
