"""What an agent or a person is told about one failed todo."""

from planner.brief.page import write_brief
from planner.brief.short import Consequences, write_short_brief

__all__ = ["Consequences", "write_brief", "write_short_brief"]
