"""What an agent or a person is told about one failed todo."""

from planner.brief.page import Consequences, write_brief

__all__ = ["Consequences", "write_brief"]
