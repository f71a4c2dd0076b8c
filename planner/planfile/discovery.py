"""Discovery of plans: the usual plan, and plan settings of pytest's ini file and ``[tool.planverify]``.

pytest's rootdir is determined by pytest's own rules, without importing pytest:
https://docs.pytest.org/en/stable/reference/customize.html#finding-the-rootdir
"""

from __future__ import annotations

import os
import shlex
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from planner.errors import PlannerError
from planner.planfile.project_files import RootedFiles, open_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PLAN_NAMES = ("planverify.yaml", "plan.yaml", "todo.yaml")
"""File names of the default plan; the first that exists is used."""

PLAN_ENDINGS = (".yaml", ".yml", ".json")

INI_KEY = "planverify_plan"

SEPARATOR = "::"
"""Separates a plan from comma-separated todo ids: ``plan.yaml::a,b``."""

INI_FILES = (
    "pytest.toml",
    ".pytest.toml",
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
"""pytest's ini files in its search order. The first four count even if empty."""

Section = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChoice:
    """A chosen plan, or some of its todos."""

    path: Path
    """Absolute path without ``..``."""
    todo_ids: tuple[str, ...] | None = None
    """``None`` for the whole plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRoot:
    """pytest's rootdir with the settings of its ini file."""

    folder: Path
    ini: Path | None = None
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    """pytest's settings in the ini file."""

    @property
    def plans(self) -> tuple[str, ...]:
        """Plans in ``planverify_plan`` of the ini file, relative to its folder."""
        return self.words(INI_KEY)

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words or list items of a setting; empty if it is not set."""
        value = self.settings.get(name)
        if not isinstance(value, str):
            return tuple(map(str, cast("list[object]", value))) if isinstance(value, list) else ()
        try:
            return tuple(shlex.split(value, comments=True))
        except ValueError:  # unbalanced quotes
            return tuple(value.split())


def parse_choice(word: str, base: Path) -> PlanChoice:
    """Parse ``plan.yaml`` or ``plan.yaml::a,b`` relative to a folder."""
    text, separator, names = word.partition(SEPARATOR)
    path = Path(os.path.abspath(base / text))
    return PlanChoice(path=path, todo_ids=tuple(names.split(",")) if separator else None)


def find_plans(directory: Path) -> tuple[PlanChoice, ...]:
    """Return the plans that ``pytest --planverify`` verifies in a folder by default."""
    root = project_root(directory)
    return usual_plans(directory, root.folder, root.plans, root.ini)


def usual_plans(
    directory: Path, rootdir: Path, ini_plans: Iterable[str], ini: Path | None
) -> tuple[PlanChoice, ...]:
    """Return the plans of the ini file, else the first default plan, here or in the rootdir."""
    base = rootdir if ini is None else ini.parent
    named = tuple(parse_choice(word, base) for word in ini_plans)
    if named:
        return named
    places = (folder / name for folder in dict.fromkeys((directory, rootdir)) for name in PLAN_NAMES)
    return tuple(PlanChoice(path=path) for path in places if path.is_file())[:1]


def plan_boundary(plan: Path, directory: Path | None = None, rootdir: Path | None = None) -> Path:
    """Return the folder that must contain the plan's root.

    It is the widest of those folders that contain the plan: pytest's rootdir, the current ``directory``,
    and the plan's own folder.
    """
    directory = directory or Path.cwd()
    plan = Path(os.path.abspath(directory / plan))
    rootdir = rootdir or project_root(directory, plan.parent).folder
    around = [folder for folder in (rootdir, directory, plan.parent) if folder in plan.parents]
    return min(around, key=lambda folder: len(folder.parts))


def project_root(directory: Path, start: Path | None = None) -> ProjectRoot:
    """Return the rootdir of a pytest started in ``directory`` with ``start`` as its only argument."""
    start = start or directory
    first_pyproject: Path | None = None
    for folder in (start, *start.parents):
        for name in INI_FILES:
            path = folder / name
            try:
                with open_regular(path) as file:
                    text = file.read().decode("utf-8", "replace")
            except OSError:
                continue
            # To pytest a pyproject.toml without settings marks the rootdir, if no other ini file does.
            if name == "pyproject.toml" and first_pyproject is None:
                first_pyproject = path
            try:
                section = pytest_settings(name, text)
            except ValueError:
                section = Section() if name in INI_FILES[:4] else None
            if section is not None:
                return ProjectRoot(folder=folder, ini=path, settings=section)
    if first_pyproject is not None:
        return ProjectRoot(folder=first_pyproject.parent, ini=first_pyproject)
    for folder in (start, *start.parents):
        if (folder / "setup.py").is_file():
            return ProjectRoot(folder=folder)
    # As pytest does: the common ancestor, unless that is the root of the file system.
    common = Path(os.path.commonpath((directory, start)))
    return ProjectRoot(folder=start if common == common.parent else common)


def pytest_settings(name: str, text: str) -> Section | None:
    """Return pytest's settings in an ini file; ``None`` if it has none.

    Raises ``ValueError`` if the text cannot be parsed.
    """
    if name == "pyproject.toml":
        section = _table(text, "tool", "pytest")
        # pytest allows keys of ``[tool.pytest]`` itself or of ``ini_options`` below it, not both.
        is_own = section and section.keys() != {"ini_options"}
        return section if is_own else _table(text, "tool", "pytest", "ini_options")
    if name.endswith(".toml"):
        return _table(text, "pytest") or {}
    import configparser  # not in workers, which must not have more modules loaded than pytest alone

    # Without interpolation, as settings such as log_format contain "%".
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    header = "tool:pytest" if name == "setup.cfg" else "pytest"
    try:
        parser.read_string(text)
    # AttributeError: before Python 3.13, for a line that continues a key without value.
    except (configparser.Error, AttributeError) as error:
        raise ValueError(error) from None
    if parser.has_section(header):
        return dict(parser.items(header))
    return {} if name in INI_FILES[:4] else None


def _table(text: str, *keys: str) -> Section | None:
    """Return the table below ``keys`` in a TOML text; ``None`` if it has none. Raises ``ValueError``."""
    try:
        value: Any = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(error) from None
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            return None
        value = cast("Mapping[str, Any]", value)[key]
    return dict(cast("Section", value)) if isinstance(value, dict) else None


# -- [tool.planverify] ---------------------------------------------------------------------------------


def planverify_settings(folder: Path) -> dict[str, Any]:
    """Return ``[tool.planverify]`` of a folder's ``pyproject.toml``; empty if missing.

    Raises ``PlannerError`` if it is not a table.
    """
    file = RootedFiles(folder).read("pyproject.toml")
    tool: Section | None = None
    with suppress(ValueError):  # invalid TOML is reported by other tools
        tool = _table(file.text, "tool") if file is not None and file.is_whole else None
    table = (tool or {}).get("planverify", {})
    if not isinstance(table, dict):
        place = f"{folder / 'pyproject.toml'}: [tool.planverify]"
        raise PlannerError(f"{place} is not a table; write it under its own heading")
    return cast("dict[str, Any]", table)
