"""Find the plan file of a parent: by its path, or by the id of the sub-project."""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING

from planner.planfile.confinement import is_below, unusual_fault
from planner.planfile.loader import plan_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from planner.model.plan import Todo
    from planner.planfile.loader import LoadedPlan

FOLDERS = ("", "phases", "sub_plans", "plans")
"""Where a sub-project is looked for, below the folder of the plan that names it."""

SUFFIXES = (".yaml", ".yml", ".json")
MAX_FILES = 500
"""So many files of those folders are opened to find an id."""


class Unfound(Exception):
    """A parent's plan cannot be had: the message says why, and after a semicolon what to do."""


class SubPlanFiles:
    """Finds the plan files of parents; remembers the ids of the plans that it has looked at."""

    def __init__(self) -> None:
        self._ids: dict[Path, dict[str, list[Path]]] = {}

    def find(self, todo: Todo, naming: LoadedPlan) -> Path:
        """The plan file that a parent of the plan ``naming`` names. Raises :class:`Unfound`."""
        if todo.sub_plan is None:
            assert todo.sub_project_id is not None  # a parent without either key is refused with its plan
            return self._by_id(todo.sub_project_id, naming.path.parent)
        path = naming.root / todo.sub_plan
        if not os.path.exists(path):
            raise Unfound(
                f"there is no file '{todo.sub_plan}' below {naming.root}; write it, or mend the path"
            )
        return path

    def _by_id(self, plan_id: str, folder: Path) -> Path:
        found = _different(_named(plan_id, folder)) or _different(self._holding(plan_id, folder))
        places = ", ".join(["its folder", *(f"{name}/" for name in FOLDERS if name)])
        if not found:
            raise Unfound(
                f"there is no plan '{plan_id}' in {folder}: neither {plan_id}.yaml, .yml or .json nor a "
                f"plan of that todo_list_id in {places}; write it, or name its file with sub_plan"
            )
        shown = [path.relative_to(folder).as_posix() for path in found]
        if len(found) > 1:
            raise Unfound(
                f"'{plan_id}' may be {' or '.join(shown[:3])} in {folder}; name the file with sub_plan"
            )
        if not is_below(os.path.realpath(found[0]), os.path.realpath(folder)):
            raise Unfound(f"{shown[0]} leaves {folder} through a symbolic link; name a file inside it")
        return found[0]

    def _holding(self, plan_id: str, folder: Path) -> list[Path]:
        """The plan files with that todo_list_id."""
        if folder not in self._ids:
            self._ids[folder] = {}
            for path in islice(_plan_files(folder), MAX_FILES):
                held = plan_id_of(path)
                if held is not None:
                    self._ids[folder].setdefault(held, []).append(path)
        return self._ids[folder].get(plan_id, [])


def _named(plan_id: str, folder: Path) -> Iterator[Path]:
    """The files that bear the id as their name, if it can be one."""
    if "/" in plan_id or unusual_fault(plan_id, "") is not None:
        return
    for below in FOLDERS:
        for suffix in SUFFIXES:
            path = folder / below / f"{plan_id}{suffix}"
            if os.path.isfile(path):
                yield path


def _plan_files(folder: Path) -> Iterator[Path]:
    for below in FOLDERS:
        try:
            names = sorted(os.listdir(folder / below))
        except OSError:
            continue
        for name in names:
            path = folder / below / name
            if name.endswith(SUFFIXES) and os.path.isfile(path):
                yield path


def _different(paths: Iterable[Path]) -> list[Path]:
    """The paths, each file once, under whichever name comes first."""
    return list({os.path.realpath(path): path for path in reversed(list(paths))}.values())[::-1]
