"""What ``[tool.planverify]`` in the ``pyproject.toml`` of a repository says.

Its ``tools`` are what plans made in this repository may name beside the catalog. They count for whoever
writes a plan, and are written into it: a plan alone says what judges it.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from planner.catalog.commands import fault_of_tool
from planner.errors import PlannerError
from planner.model.plan import ToolSpec
from planner.planfile.rooted_files import RootedFiles

if TYPE_CHECKING:
    from pathlib import Path

FILE = "pyproject.toml"
TABLE = "planverify"


class Settings(NamedTuple):
    """The table, and where it stands."""

    values: dict[str, Any]
    place: str


def planverify_settings(folder: Path) -> Settings:
    """Return the table of a folder, empty where there is none. Raises ``PlannerError`` for no table."""
    place = f"{folder / FILE}: [tool.{TABLE}]"
    held = RootedFiles(folder).read(FILE)
    if held is None or not held.is_whole:
        return Settings({}, place)
    try:
        document: Any = tomllib.loads(held.data.decode("utf-8-sig", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return Settings({}, place)  # its own tools speak of that
    tool = document.get("tool", {})
    table: Any = cast("dict[str, Any]", tool).get(TABLE, {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise PlannerError(f"{place} is no table; write it with a heading of its own")
    return Settings(cast("dict[str, Any]", table), place)


def repository_tools(folder: Path) -> tuple[ToolSpec, ...]:
    """Return the tools that a repository names: ``[tool.planverify.tools]``, by their names.

    A value is the words that the name stands for, or a table with ``argv`` and ``kind``. Raises
    ``PlannerError`` for one that a plan may not name either.
    """
    settings = planverify_settings(folder)
    held = settings.values.get("tools", {})
    place = settings.place.replace("]", ".tools]")
    if not isinstance(held, dict):
        raise PlannerError(f'{place} is no table; write NAME = ["PROGRAM", "WORD"] in it')
    found: list[ToolSpec] = []
    for name, value in cast("dict[str, Any]", held).items():
        words = cast("dict[str, Any]", value) if isinstance(value, dict) else {"argv": value}
        if others := words.keys() - {"argv", "kind"}:
            raise PlannerError(f"{place} {name}: {min(others)} is no key; the keys are argv and kind")
        try:
            spec = ToolSpec.model_validate({"name": name, **words})
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            raise PlannerError(f"{place} {name}: {key}: {first['msg']}; write a list of words") from None
        if (fault := fault_of_tool(spec)) is not None:
            raise PlannerError(f"{place} {name}: {fault}")
        found.append(spec)
    return tuple(found)
