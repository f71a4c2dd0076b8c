"""The tool catalog: which commands a plan may run, how to take them apart and how to read their output."""

from __future__ import annotations

from planner.catalog.commands import Command, parse_command
from planner.catalog.findings import read_findings
from planner.catalog.pytest_arguments import PytestInvocation
from planner.catalog.tools import RECIPES, TOOLS, Purpose, Tool
from planner.catalog.vacuity import proves_nothing

__all__ = [
    "RECIPES",
    "TOOLS",
    "Command",
    "Purpose",
    "PytestInvocation",
    "Tool",
    "parse_command",
    "proves_nothing",
    "read_findings",
]
