"""Facts of a project for drivers: its configured tools, and the fingerprint of its repository."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from planner.catalog import Purpose, parse_command
from planner.errors import CommandSyntaxError
from planner.model.plan import ArtifactSpec
from planner.planfile.discovery import plan_boundary
from planner.planfile.project_files import RootedFiles
from planner.policy.criteria import commands_of
from planner.text.glob_patterns import is_glob

if TYPE_CHECKING:
    from planner.model.plan import Plan
    from planner.planfile.loader import LoadedPlan

MANIFESTS = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "Cargo.toml", "go.mod")
"""Manifest files of a project."""

_NAMED_CONFIGURATIONS = {
    "mypy": "mypy.ini .mypy.ini",
    "pyright": "pyrightconfig.json",
    "tsc": "tsconfig.json",
    "ruff": "ruff.toml .ruff.toml",
    "flake8": ".flake8",
    "pylint": ".pylintrc pylintrc",
    "eslint": "eslint.config.js eslint.config.mjs .eslintrc.json .eslintrc.js",
}
"""Configuration files by tool."""

_SECTIONS = {
    name: name for name in ("mypy", "pyright", "ruff", "black", "isort", "pylint", "flake8", "pycodestyle")
} | {"basedpyright": "pyright"}
"""Tools by table in ``pyproject.toml`` or section in ``setup.cfg`` and ``tox.ini``."""


def configured_tools(root: Path) -> frozenset[str]:
    """Return the type checkers and linters that a project is configured for."""
    files = RootedFiles(root)
    found = {tool for tool, names in _NAMED_CONFIGURATIONS.items() if any(map(files.read, names.split()))}
    for file, header in (("pyproject.toml", r"\[tool\."), ("setup.cfg", r"\["), ("tox.ini", r"\[")):
        held = files.read(file)
        sections = re.findall(rf"^{header}(\w+)", held.text if held else "", re.MULTILINE)
        found.update(_SECTIONS[name] for name in sections if name in _SECTIONS)
    return frozenset(found)


def misplaced_root(loaded: LoadedPlan) -> tuple[str, str] | None:
    """Return problem and remedy if a plan without ``root`` names files that exist only in a folder above.

    Up to three levels are searched, within the folder that may contain the root.
    """
    if "root" in loaded.plan.model_fields_set:
        return None
    named: dict[str, None] = {}
    for criterion in (each for todo in loaded.plan.items for each in loaded.criteria[todo.id]):
        spec, command = criterion.spec, criterion.command
        if command is not None and command.pytest is not None:
            named |= dict.fromkeys(each.partition("::")[0] for each in command.pytest.selections)
        elif isinstance(spec, ArtifactSpec) and not is_glob(spec.path):
            named[spec.path] = None
    boundary = plan_boundary(loaded.path)
    above = [each for each in loaded.root.parents[:3] if each.is_relative_to(boundary)]
    for folder in (loaded.root, *above):
        found = next((name for name in named if name and os.path.exists(folder / name)), None)
        if found is not None and folder != loaded.root:
            root = Path(os.path.relpath(folder, loaded.root)).as_posix()
            problem = f"no file that the plan names exists below its root, but {found} does below {root}"
            return problem, f"add root: {root} to the plan"
        if found is not None:
            break
    return None


def repository_fingerprint(root: Path, plan: Plan) -> str:
    """Return ``sha256:`` and a digest by which a repository is recognized.

    It covers the manifests in the root and the tools of the plan's test commands (without selections,
    which differ by todo; ``pytest`` if there are none). So two checkouts of one project, and the
    project after work that leaves its manifests alone, are equal. Memory of a repository with another
    fingerprint counts less. Missing, irregular and linked-out manifests count as absent; of long ones
    only the first MiB counts; line ends are normalized.
    """
    testers: set[str] = set()
    for _, spec in (each for todo in plan.items for each in commands_of(todo)):
        with suppress(CommandSyntaxError):  # reported by validation
            tool = parse_command(spec.cmd).tool
            if tool.purpose is Purpose.TEST:
                testers.add(tool.name)
    files = RootedFiles(root)
    facts: dict[str, object] = {"commands": sorted(testers) or ["pytest"]}
    for name in MANIFESTS:
        held = files.read(name)
        if held is not None:
            facts[name] = [not held.is_whole, hashlib.sha256(held.text.encode()).hexdigest()]
    return "sha256:" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
