"""Writes a revised plan as the user would have: their file, changed only where the plans differ.

The new text is loaded again before it is believed. Where it does not hold the revised plan (an anchor that
several todos share was changed for one of them), the whole plan is written anew without their comments.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from planner.edges.plan_file import LoadedPlan, collector_paused, dump_plan, load_plan_text, shown_path
from planner.edges.plan_text import plain
from planner.edges.project.confinement import is_below, unusual_fault
from planner.edges.rewriting.differences import same
from planner.edges.rewriting.patching import patched
from planner.edges.rewriting.surgery import Unpatchable
from planner.errors import PlanFileError, PlannerError
from planner.planfile.faults import Refused
from planner.planfile.source import read_source
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from planner.model.plan import Plan, Todo

_BYTE_ORDER_MARK = "\ufeff"
_LONGEST_MESSAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """The text of a new plan file."""

    text: str
    faithful: bool
    """Whether it is the user's text with changes; if not, the whole plan was written anew."""


def rewrite(loaded: LoadedPlan, revised: Plan, *, target: Path, boundary: Path | None = None) -> Rewritten:
    """The text with which the file ``target`` holds the plan ``revised``, made from that of ``loaded``.

    In another folder the plan's ``root`` is changed so that it leads to the same place. Nothing is written.
    Raises :class:`planner.errors.PlanFileError` with every rule that the revised plan breaks, and
    :class:`planner.errors.PlannerError` if the root cannot be named from there or the old file has changed.
    """
    root = Path(os.path.realpath(loaded.path.parent / revised.root))
    wanted = _rooted(revised, root, target, Path.cwd() if boundary is None else boundary)
    formats = _format_of(loaded.path), _format_of(target)
    said, says = _plainly(loaded.plan, wanted)

    def holds(text: str) -> bool:
        found = load_plan_text(text, target, boundary=boundary)
        return found.root == root and found.plan == wanted and same(plain(found.plan), says)

    with collector_paused():
        text = _patched(loaded, said, says, formats[0]) if formats[0] == formats[1] else None
        try:
            if text is not None and holds(text):
                return Rewritten(text=text, faithful=True)
        except PlanFileError:
            # Either the patch or the plan is at fault; writing the plan anew tells which.
            pass
        text = dump_plan(wanted, format=formats[1])
        if not holds(text):
            raise _error(target, "the revised plan holds what no plan file can say; leave it out")
        return Rewritten(text=text, faithful=False)


def _patched(loaded: LoadedPlan, said: dict[str, Any], says: dict[str, Any], format: str) -> str | None:
    try:
        source = read_source(loaded.path)
    except Refused as refused:
        raise _error(loaded.path, str(refused)) from None
    if source.digest != loaded.digest:
        raise _error(loaded.path, "the plan has changed since it was loaded; run the command again")
    try:
        text = patched(source.text, said, says, is_json=format == "json")
    except Unpatchable:
        return None
    return _BYTE_ORDER_MARK + text if source.marked else text


def _plainly(old: Plan, new: Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both plans as plain values. A todo that they share is one value in both."""
    known: dict[int, dict[str, Any]] = {}

    def todo(item: Todo) -> dict[str, Any]:
        if id(item) not in known:
            known[id(item)] = plain(item)
        return known[id(item)]

    def of(plan: Plan) -> dict[str, Any]:
        rest = plain(plan.model_copy(update={"items": ()}))
        return {key: [todo(item) for item in plan.items] if key == "items" else rest[key] for key in rest}

    return of(old), of(new)


def _rooted(plan: Plan, root: Path, target: Path, boundary: Path) -> Plan:
    """The plan with a ``root`` that leads from the target's folder to where it should."""
    folder = os.path.realpath(target.parent)
    if os.path.realpath(Path(folder) / plan.root) == str(root):
        return plan
    name = os.path.relpath(root, folder)
    if unusual_fault(name, folder) is not None:
        name = f"./{name}"
    if not any(is_below(str(root), each) for each in (folder, os.path.realpath(boundary))):
        raise _error(
            target,
            f"the plan's root {root} lies neither in that folder nor under {boundary}; "
            f"name a file in {root}, or run the command from there",
        )
    return plan.model_copy(update={"root": name})


def _format_of(path: Path) -> Literal["yaml", "json"]:
    return "json" if path.suffix.lower() == ".json" else "yaml"


def _error(path: Path, problem: str) -> PlannerError:
    return PlannerError(" ".join(clean(f"{shown_path(path)}: {problem}", limit=_LONGEST_MESSAGE).split()))
