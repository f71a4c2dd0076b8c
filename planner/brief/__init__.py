"""What an agent or a person is told about one failed todo."""

from planner.brief.page import summarize_failure, write_brief

__all__ = ["summarize_failure", "write_brief"]
