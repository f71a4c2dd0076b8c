"""Find the plan that is meant, and what pytest's ini file and ``[tool.planverify]`` say of plans.

The folder that pytest calls its rootdir is found by pytest's own rules, without pytest:
https://docs.pytest.org/en/stable/reference/customize.html#finding-the-rootdir
"""

from __future__ import annotations

import configparser
import os
import shlex
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from planner.errors import PlannerError
from planner.planfile.project_files import RootedFiles, open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planner.model.plan import ToolSpec

PLAN_NAMES = ("planverify.yaml", "plan.yaml", "todo.yaml")
"""The plan that is meant where none is named, the first that is there."""

PLAN_ENDINGS = (".yaml", ".yml", ".json")

INI_KEY = "planverify_plan"

SEPARATOR = "::"
"""Between a plan and the ids of its todos, which are apart by commas: ``plan.yaml::a,b``."""

_INI_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
"""In the order in which pytest looks for them in a folder. The first four count even where empty."""

Section = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChoice:
    """A plan that is meant, or some of its todos."""

    path: Path
    """Absolute, with what stands for a folder above worked out."""
    todo_ids: tuple[str, ...] | None = None
    """``None`` for the whole plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRoot:
    """pytest's rootdir, and the plan settings of its ini file."""

    folder: Path
    ini: Path | None = None
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    """What the ini file says to pytest."""

    @property
    def plans(self) -> tuple[str, ...]:
        """Return those of the ini file's ``planverify_plan``, relative to its folder."""
        return self.words(INI_KEY)

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words of a setting; none where it is not set."""
        value = self.settings.get(name)
        if not isinstance(value, str):
            return self.lines(name)
        try:
            return tuple(shlex.split(value, comments=True))
        except ValueError:
            return tuple(value.split())

    def lines(self, name: str) -> tuple[str, ...]:
        """Return the lines of a setting, or the items of a list; none where it is not set."""
        value = self.settings.get(name)
        if isinstance(value, str):
            return tuple(filter(None, map(str.strip, value.splitlines())))
        return tuple(map(str, cast("list[object]", value))) if isinstance(value, list) else ()


def parse_choice(word: str, base: Path) -> PlanChoice:
    """Return what ``plan.yaml`` or ``plan.yaml::a,b`` means, relative to a folder."""
    text, separator, names = word.partition(SEPARATOR)
    path = Path(os.path.abspath(base / text))
    return PlanChoice(path=path, todo_ids=tuple(names.split(",")) if separator else None)


def find_plans(directory: Path) -> tuple[PlanChoice, ...]:
    """Return the plans that ``pytest --planverify`` verifies in that folder when none is named."""
    root = project_root(directory)
    return usual_plans(directory, root.folder, root.plans, root.ini)


def usual_plans(
    directory: Path, rootdir: Path, ini_plans: Iterable[str], ini: Path | None
) -> tuple[PlanChoice, ...]:
    """Return the plans of the ini file, else the first of a usual name, here or in the rootdir."""
    base = rootdir if ini is None else ini.parent
    named = tuple(parse_choice(word, base) for word in ini_plans)
    if named:
        return named
    places = (folder / name for folder in dict.fromkeys((directory, rootdir)) for name in PLAN_NAMES)
    return tuple(PlanChoice(path=path) for path in places if path.is_file())[:1]


def plan_boundary(plan: Path, directory: Path | None = None, rootdir: Path | None = None) -> Path:
    """Return the folder that the plan's root may not leave.

    That is the widest of pytest's rootdir, the current ``directory`` and the plan's own that holds it.
    """
    directory = directory or Path.cwd()
    plan = Path(os.path.abspath(directory / plan))
    rootdir = rootdir or project_root(directory, plan.parent).folder
    around = [folder for folder in (rootdir, directory, plan.parent) if folder in plan.parents]
    return min(around, key=lambda folder: len(folder.parts))


def project_root(directory: Path, start: Path | None = None) -> ProjectRoot:
    """Find the rootdir of a pytest that is started in a folder, with ``start`` as its only argument."""
    start = start or directory
    first_pyproject: Path | None = None
    for folder in (start, *start.parents):
        for name in _INI_FILES:
            path = folder / name
            try:
                with open_regular(path) as file:
                    text = file.read().decode("utf-8", "replace")
            except OSError:
                continue
            if name == "pyproject.toml" and first_pyproject is None:
                first_pyproject = path
            section = _settings(name, text)
            if section is not None:
                return ProjectRoot(folder=folder, ini=path, settings=section)
    if first_pyproject is not None:
        return ProjectRoot(folder=first_pyproject.parent, ini=first_pyproject)
    for folder in (start, *start.parents):
        if (folder / "setup.py").is_file():
            return ProjectRoot(folder=folder)
    common = Path(os.path.commonpath((directory, start)))
    return ProjectRoot(folder=start if common == common.parent else common)


def _settings(name: str, text: str) -> Section | None:
    """Return what an ini file says to pytest; ``None`` where it says nothing."""
    if name == "pyproject.toml":
        section = _table(text, "tool", "pytest")
        is_own = section and section.keys() != {"ini_options"}
        return section if is_own else _table(text, "tool", "pytest", "ini_options")
    if name.endswith(".toml"):
        return _table(text, "pytest") or {}
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    header = "tool:pytest" if name == "setup.cfg" else "pytest"
    with suppress(configparser.Error):
        parser.read_string(text)
        if parser.has_section(header):
            return dict(parser.items(header))
    return {} if name in _INI_FILES[:4] else None


def _table(text: str, *keys: str) -> Section | None:
    try:
        value: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return None
        value = cast("Mapping[str, Any]", value)[key]
    return dict(cast("Section", value)) if isinstance(value, dict) else None


# -- [tool.planverify] ---------------------------------------------------------------------------------


class RepositorySettings(NamedTuple):
    """The table ``[tool.planverify]`` of a ``pyproject.toml``, and where it stands."""

    values: dict[str, Any]
    place: str


def planverify_settings(folder: Path) -> RepositorySettings:
    """Return the table of a folder, empty where there is none. Raises ``PlannerError`` for no table."""
    place = f"{folder / 'pyproject.toml'}: [tool.planverify]"
    file = RootedFiles(folder).read("pyproject.toml")
    # Of a file that is no TOML its own tools speak.
    tool = _table(file.text, "tool") if file is not None and file.is_whole else None
    table = (tool or {}).get("planverify", {})
    if not isinstance(table, dict):
        raise PlannerError(f"{place} is no table; write it with a heading of its own")
    return RepositorySettings(cast("dict[str, Any]", table), place)


def repository_tools(folder: Path) -> tuple[ToolSpec, ...]:
    """Return the tools that a repository names: ``[tool.planverify.tools]``, by their names.

    They count for whoever writes a plan, and are written into it: a plan alone says what judges it. A
    value is the words that the name stands for, or a table with ``argv`` and ``kind``. Raises
    ``PlannerError`` for one that a plan may not name either.
    """
    from pydantic import ValidationError

    from planner.catalog.commands import fault_of_tool
    from planner.model.plan import ToolSpec

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
