"""The tool catalog: which commands a plan may run, how they are parsed, and how their output is read."""

from __future__ import annotations

from planner.catalog.commands import Command, fault_of_tool, parse_command
from planner.catalog.pytest_arguments import PytestInvocation
from planner.catalog.tools import RECIPES, TOOLS, Purpose, Tool

__all__ = [
    "RECIPES",
    "TOOLS",
    "Command",
    "Purpose",
    "PytestInvocation",
    "Tool",
    "fault_of_tool",
    "parse_command",
]
