"""Where a module of the project has its file, as far as paths that are known show the project's layout."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import Side
from planner.rules.revision.facts import exceptions
from planner.rules.revision.files import below_root, is_test_file, located_files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.rules.revision.situation import Situation

MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")

_PREFIXES: tuple[list[str], ...] = ([], ["src"], ["lib"], ["python"])
"""Folders in which the packages of a project stand."""


def module_file(situation: Situation, module: str) -> str | None:
    """The file of a first-party module; ``None`` where the module is none of the project's.

    A file that the plan expects is taken as it is named; else the module stands where its package does.
    """
    inner = module.replace(".", "/")
    names = (f"{inner}.py", f"{inner}/__init__.py")
    promised = _promised(situation)
    for path in promised:
        if any(path == name or path.endswith(f"/{name}") for name in names):
            return path
    known = (*known_files(situation), *promised, *(situation.todo.allowed_files or ()))
    top = module.partition(".")[0]
    prefix = _prefix_of_frames(situation, top)
    if prefix is None:
        prefix = _prefix_of(top, known)
    if prefix is None:
        return None
    is_package = any(path.startswith(f"{prefix}{inner}/") for path in known)
    return f"{prefix}{names[is_package]}"


def known_files(situation: Situation) -> tuple[str, ...]:
    """Files of the product that the failure shows."""
    frames = [frame for each in exceptions(situation) for frame in each.frames]
    shown = [frame.path for frame in frames if frame.side is Side.PRODUCT]
    found = [below_root(path) for path in (*located_files(situation), *shown)]
    return tuple(dict.fromkeys(path for path in found if path is not None and not is_test_file(path)))


def _promised(situation: Situation) -> tuple[str, ...]:
    """Python files that the todo is expected to make."""
    todo = situation.todo
    wanted = [artifact.path for artifact in todo.acceptance_criteria.expected_artifacts]
    task = todo.controller_task_spec
    if task is not None and task.target_file is not None:
        wanted.append(task.target_file)
    plain = [below_root(path) for path in wanted]
    return tuple(path for path in plain if path is not None and path.endswith(".py"))


def _prefix_of_frames(situation: Situation, top: str) -> str | None:
    """What stands before a package whose code was seen running: the file's path without the module's."""
    for each in exceptions(situation):
        for frame in each.frames:
            path = below_root(frame.path)
            inner = (frame.module or "").replace(".", "/")
            if frame.side is not Side.PRODUCT or path is None or inner.partition("/")[0] != top:
                continue
            for tail in (f"{inner}.py", f"{inner}/__init__.py"):
                if path == tail or path.endswith(f"/{tail}"):
                    return path.removesuffix(tail)
    return None


def _prefix_of(top: str, paths: Iterable[str]) -> str | None:
    """What stands before the top-level package or module in one of the paths: ``src/`` or nothing."""
    for path in paths:
        *folders, name = path.split("/")
        at = folders.index(top) if top in folders else len(folders) if name == f"{top}.py" else None
        if at is not None and folders[:at] in _PREFIXES:
            return "".join(f"{each}/" for each in folders[:at])
    return None
