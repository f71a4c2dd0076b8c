"""Table of the tools that a plan may run, with purpose and output format: the rows of ``tools.toml``.

A plan cannot change a row; it can only add tools that have none (:func:`tool_of_plan`). Options with which
a tool succeeds whatever it finds, or rewrites the work that it should judge, are refused by its row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.catalog.tables import load_table
from planner.model.verdicts import Purpose

if TYPE_CHECKING:
    from planner.model.plan import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One row of the catalog, or one tool that a plan adds; ``tools.toml`` describes the fields."""

    name: str
    purpose: Purpose
    output: str = ""
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    subcommands: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    needs: tuple[tuple[str, ...], ...] = ()
    clusters: str = ""
    targets: bool = False
    h_is_help: bool = True
    files: tuple[str, ...] = ()
    holds: str = ""
    lenient: bool = False
    argv: tuple[str, ...] = ()
    """For a tool that a plan adds: the words that replace its name in a command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A program that starts another tool of the table; ``tools.toml`` describes the fields."""

    program: str
    subcommands: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    interpreter: bool = False
    environments: bool = False
    versions: bool = False


_TABLE = load_table("tools")
_WORDS = ("programs", "modules", "subcommands", "valued", "script", "refused", "files")
"""Keys whose values are words in one string."""


def _values(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its words split."""
    return {name: tuple(value.split()) if name in _WORDS else value for name, value in row.items()}


def _tool(purpose: str, row: dict[str, Any]) -> Tool:
    """Return the tool of a row; program and output format default to its name."""
    needs = row.get("needs", [])
    values: dict[str, Any] = {"programs": (row["name"],), "output": row["name"], **_values(row)}
    values["purpose"] = Purpose(purpose)
    values["needs"] = tuple(
        tuple(group.split()) for group in ([needs] if isinstance(needs, str) else needs)
    )
    return Tool(**values)


def _launcher(row: dict[str, Any]) -> Launcher:
    values = _values(row)
    values["program"], *subcommands = row["program"].split()
    return Launcher(**values, subcommands=tuple(subcommands))


def _refusals(names: str) -> dict[str, tuple[str, str]]:
    """Return reason and remedy for each refused name; ``names`` is the key of the names in the rows."""
    return {
        name: (row["why"], row["instead"])
        for row in _TABLE["refused"]
        for name in row.get(names, "").split()
    }


TOOLS: tuple[Tool, ...] = tuple(
    _tool(purpose, row) for purpose, rows in _TABLE["tools"].items() for row in rows
)
"""The tools that every plan may run."""

PYTEST = next(tool for tool in TOOLS if tool.name == "pytest")
PYTHON_SCRIPT = next(tool for tool in TOOLS if tool.name == "python")
"""``python FILE.py`` and ``python -m`` of one of the project's own modules."""

LAUNCHERS: tuple[Launcher, ...] = tuple(map(_launcher, _TABLE["launchers"]))

RECIPES: dict[str, tuple[str, ...]] = {
    name: tuple(commands) for name, commands in _TABLE["recipes"].items()
}
"""Named sequences of commands; each command becomes a criterion of its own."""

REFUSED_PROGRAMS = _refusals("programs")
"""Refused programs that plans often try, with the reason and what to do instead."""
REFUSED_MODULES = _refusals("modules")
"""Refused modules of ``python -m``, likewise."""

CHANGING = frozenset(_TABLE["changing"].split())
"""Subcommands that change something: no message advises a plan to add them as tools."""

_KINDS_OF_TARGETS = tuple(
    (re.compile(pattern), Purpose(purpose)) for purpose, pattern in _TABLE["kind_of_target"].items()
)


def purpose_of_target(names: str) -> Purpose | None:
    """Return the purpose that the names of targets or subcommands indicate; ``None`` if they do not."""
    return next((purpose for pattern, purpose in _KINDS_OF_TARGETS if pattern.search(names.lower())), None)


def tool_of_plan(spec: ToolSpec) -> Tool:
    """Return the tool of an entry in a plan's ``metadata.tools``. Its exit status alone is the verdict."""
    # What -h means to a tool that only the plan knows is not known here.
    argv = spec.argv or (spec.name,)
    return Tool(name=spec.name, purpose=spec.kind, programs=argv[:1], argv=argv, h_is_help=False)
