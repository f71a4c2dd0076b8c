"""Templates of plans, from ``templates.toml``: the steps that a plan of a known kind takes, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.catalog.tables import load_table
from planner.model.taxonomy import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStep:
    """One step that every plan of the kind has."""

    name: str
    title: str
    words: frozenset[str]
    roles: tuple[Role, ...]
    criterion: str
    fixtures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A kind of plan."""

    name: str
    summary: str
    steps: tuple[TemplateStep, ...]


def _step(row: dict[str, Any]) -> TemplateStep:
    values: dict[str, Any] = {
        **row,
        "words": frozenset(row["words"].split()),
        "fixtures": tuple(row["fixtures"]),
    }
    values["roles"] = tuple(map(Role, row["roles"]))
    return TemplateStep(**values)


def _template(row: dict[str, Any]) -> Template:
    return Template(name=row["name"], summary=row["summary"], steps=tuple(map(_step, row["steps"])))


TEMPLATES = {row["name"]: _template(row) for row in load_table("templates")["templates"]}
"""Every template by the name that ``x-template`` gives."""
