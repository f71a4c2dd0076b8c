"""The tools that a plan may run, what each is for and how its output is read: the rows of ``tools.toml``.

A plan cannot widen this table, it can only name tools that are not in it (:func:`tool_of_plan`). An option
under which a tool succeeds whatever it finds, or rewrites the work that it should judge, stands in the row
as refused.
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
    """One row of the catalog, or one tool that a plan names; ``tools.toml`` tells what the fields mean."""

    name: str
    purpose: Purpose
    output: str = "generic"
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    subcommands: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    needs: tuple[tuple[str, ...], ...] = ()
    clusters: str = ""
    targets: bool = False
    h_is_help: bool = True
    argv: tuple[str, ...] = ()
    """Of a tool that a plan names: the words that its name stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A program that only starts another one of the table; ``tools.toml`` tells what the fields mean."""

    program: str
    subcommands: tuple[str, ...] = ()
    valued: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    interpreter: bool = False
    environments: bool = False
    versions: bool = False


_TABLE = load_table("tools")
_WORDS = ("programs", "modules", "subcommands", "valued", "script", "refused")


def _values(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value.split()) if name in _WORDS else value for name, value in row.items()}


def _tool(purpose: str, row: dict[str, Any]) -> Tool:
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
    return {
        name: (row["why"], row["instead"])
        for row in _TABLE["refused"]
        for name in row.get(names, "").split()
    }


TOOLS: tuple[Tool, ...] = tuple(
    _tool(purpose, row) for purpose, rows in _TABLE["tools"].items() for row in rows
)
"""Every tool that any plan may run."""

PYTEST = next(tool for tool in TOOLS if tool.name == "pytest")
PYTHON_SCRIPT = next(tool for tool in TOOLS if tool.name == "python")
"""``python FILE.py`` and ``python -m`` of one of the project's own modules."""

LAUNCHERS: tuple[Launcher, ...] = tuple(map(_launcher, _TABLE["launchers"]))

RECIPES: dict[str, tuple[str, ...]] = {name: tuple(those) for name, those in _TABLE["recipes"].items()}
"""Named sequences of commands, each of which becomes a criterion of its own."""

REFUSED_PROGRAMS = _refusals("programs")
"""Programs that are often tried, why they are refused, and what to do instead."""
REFUSED_MODULES = _refusals("modules")

CHANGING = frozenset(_TABLE["changing"].split())
"""Subcommands that change something: no message advises a plan to name them."""

_KINDS_OF_TARGETS = tuple(
    (re.compile(pattern), Purpose(purpose)) for purpose, pattern in _TABLE["kind_of_target"].items()
)


def purpose_of_target(names: str) -> Purpose | None:
    """Return what the names of targets or subcommands say about their purpose."""
    return next((purpose for pattern, purpose in _KINDS_OF_TARGETS if pattern.search(names.lower())), None)


def tool_of_plan(spec: ToolSpec) -> Tool:
    """Return the tool that a plan names in its ``metadata.tools``, judged by its exit status."""
    argv = spec.argv or (spec.name,)
    return Tool(name=spec.name, purpose=spec.kind, programs=argv[:1], argv=argv, h_is_help=False)
