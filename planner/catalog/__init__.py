"""The tool catalog: which commands a plan may run, and how to take them apart.

How to read what a tool prints stands in :mod:`.findings` and :mod:`.vacuity`, imported by who needs them.
"""

from __future__ import annotations

from planner.catalog.commands import Command, parse_command
from planner.catalog.pytest_arguments import PytestInvocation
from planner.catalog.tools import RECIPES, TOOLS, Purpose, Tool

__all__ = [
    "RECIPES",
    "TOOLS",
    "Command",
    "Purpose",
    "PytestInvocation",
    "Tool",
    "parse_command",
]
