"""After a failed import: what is missing is provided in a step before the branch."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.rules.revision.facts import exceptions, kindred, quoted
from planner.rules.revision.layout import MODULE, module_file
from planner.rules.revision.steps import add_step
from planner.rules.routing import role_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.model.edits import Edit
    from planner.rules.revision.situation import Situation

_NO_MODULE = re.compile(r"No module named '?(?P<module>[\w.]+)'?")
_NO_NAME = re.compile(
    r"cannot import name '(?P<name>[^']+)' from (?:partially initialized module )?'(?P<module>[^']+)'"
)
_NO_NODE_MODULE = re.compile(r"Cannot find (?:module|package) ['\"](?P<module>[^'\"]+)['\"]")

_PYTHON_MANIFESTS = (
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "requirements*.txt",
    "requirements/**",
    "*.lock",
)
_NODE_MANIFESTS = ("package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock")
"""Where dependencies are declared."""


@dataclass(frozen=True, slots=True)
class _Missing:
    """What could not be imported."""

    module: str
    name: str | None = None
    """What the module lacks; ``None`` where the module itself is missing."""
    is_node: bool = False


def after_import_error(situation: Situation) -> Iterator[Edit]:
    """Adds a step that writes the project's own module, or declares and installs a foreign one."""
    role = role_for(situation.failure, situation.todo)
    missing = missing_import(situation)
    if missing is None:
        said = situation.failure.stack_trace_head or situation.failure.suggestion or "nothing more is known"
        yield from add_step(
            situation,
            rule="import-resolved-first",
            because=f"an import fails: {quoted(said)}",
            title=f"Resolve the import that {situation.todo.id} lacks",
            task="RESOLVE_DEPENDENCY",
            hint="Find out what cannot be imported. Write it if it is the project's own; else declare and "
            "install what provides it.",
            role=role,
        )
        return
    what = f"{missing.name} of {missing.module}" if missing.name else missing.module
    path = None if missing.is_node else module_file(situation, missing.module)
    if path is not None:
        yield from add_step(
            situation,
            rule="import-resolved-first",
            because=f"{quoted(what)} is the project's own and cannot be imported",
            title=f"Provide {quoted(what)}",
            task="RESOLVE_DEPENDENCY",
            hint=f"Let {path} provide {quoted(what)}, or import it by the name that it has.",
            role=role,
            target_file=path,
            # A module that lacks a name is there already: its file would prove nothing.
            artifacts=() if missing.name else (path,),
            allowed_files=(path,),
        )
        return
    top = missing.module if missing.is_node else missing.module.partition(".")[0]
    lacks = f" in a version that has {quoted(what)}" if missing.name else ""
    yield from add_step(
        situation,
        rule="import-resolved-first",
        because=f"{quoted(what)} cannot be imported, and nothing shows that it is the project's own",
        title=f"Declare and install what provides {quoted(top)}",
        task="RESOLVE_DEPENDENCY",
        hint=f"Declare the distribution that provides the module {quoted(top)}{lacks} where the project "
        "declares its dependencies, and install it where the tests run. If the module was to be the "
        "project's own, write it instead.",
        role=role,
        allowed_files=_NODE_MANIFESTS if missing.is_node else _PYTHON_MANIFESTS,
    )


def missing_import(situation: Situation) -> _Missing | None:
    """What an import lacked, from the messages of the exceptions, else from the failure's own words."""
    said = [each.message for each in exceptions(situation)]
    for failure in kindred(situation):
        said += [failure.stack_trace_head or "", failure.suggestion or ""]
    for message in said:
        for pattern in (_NO_MODULE, _NO_NAME, _NO_NODE_MODULE):
            found = pattern.search(message)
            if found is None:
                continue
            parts = found.groupdict()
            is_node = pattern is _NO_NODE_MODULE
            if is_node or MODULE.fullmatch(parts["module"]):
                return _Missing(parts["module"], parts.get("name"), is_node)
    return None
