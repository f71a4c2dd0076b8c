"""Writes a revised plan, and the sub-plans that are revised with it, into new files beside each other."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planner.edges.file_writer import create_file
from planner.edges.latest_outcomes import shown
from planner.errors import PlannerError
from planner.planfile.loader import dump_plan
from planner.planfile.writer import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.plan import Plan
    from planner.planfile.loader import LoadedPlan
    from planner.planfile.tree import PlanTree


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlan:
    """One file that was written."""

    path: Path
    within: str
    """The qualified id of the parent whose sub-plan it is; empty for the plan itself."""
    faithful: bool
    """Whether it is the user's text with changes; if not, their comments are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewText:
    """What one file is to hold."""

    path: Path
    text: str
    faithful: bool
    """As of :class:`NewPlan`."""


def write_new_plans(tree: PlanTree, revised: Mapping[str, Plan], target: Path) -> tuple[NewPlan, ...]:
    """Write the plan to ``target``, and each changed sub-plan beside it, named by its parent.

    ``revised`` holds the changed plans by the qualified id of their parent, the top plan under the empty
    text. Every text is made before the first file is written, and no file that is there is replaced. Raises
    :class:`planner.errors.PlannerError`.
    """
    texts = new_plan_texts(tree, revised, target)
    _write({each.path: each.text for each in texts.values()})
    return tuple(
        NewPlan(path=each.path, within=within, faithful=each.faithful)
        for within, each in sorted(texts.items())
    )


def write_revised(tree: PlanTree, revised: Mapping[str, Plan], target: Path | None) -> list[str]:
    """Write the revised plans; return what is to be told about it."""
    assert target is not None
    return [f"wrote {shown(each.path)}" for each in write_new_plans(tree, revised, target)]


def new_plan_texts(tree: PlanTree, revised: Mapping[str, Plan], target: Path) -> dict[str, NewText]:
    """What :func:`write_new_plans` writes, by the qualified id of the parent; the top plan is always there.

    A sub-plan that no file of the tree holds is written whole. Raises :class:`planner.errors.PlannerError`.
    """
    parts = {"": tree.loaded, **{name: sub.loaded for name, sub in tree.sub_plans().items()}}
    plans = {
        within: plan
        for within, plan in revised.items()
        if within not in parts or plan != parts[within].plan
    }
    texts: dict[str, NewText] = {}
    while deepest := max(plans, key=_depth, default=""):
        plan, part = plans.pop(deepest), parts.get(deepest)
        path = _beside(target, deepest, part.path.suffix if part is not None else target.suffix)
        texts[deepest] = _text(part, plan, path)
        above, _, todo_id = deepest.rpartition("/")
        root = parts[above].root if above in parts else tree.loaded.root
        holding = plans[above] if above in plans else parts[above].plan
        plans[above] = _pointing(holding, todo_id, path, root)
    texts[""] = _text(tree.loaded, plans.get("", tree.loaded.plan), target)
    return texts


def _text(part: LoadedPlan | None, plan: Plan, path: Path) -> NewText:
    if part is None:
        text = dump_plan(plan, format="json" if path.suffix.lower() == ".json" else "yaml")
        return NewText(path=path, text=text, faithful=True)
    written = rewrite(part, plan, target=path)
    return NewText(path=path, text=written.text, faithful=written.faithful)


def _depth(within: str) -> tuple[int, str]:
    """Sorts a sub-plan after the plans that it is part of."""
    return within.count("/") + bool(within), within


def _beside(target: Path, within: str, suffix: str) -> Path:
    """``next.yaml`` of the plan, ``next.phase-2.yaml`` of the sub-plan of its todo ``phase-2``."""
    return target.with_name(f"{target.stem}.{within.replace('/', '.')}{suffix}")


def _pointing(plan: Plan, todo_id: str, path: Path, root: Path) -> Plan:
    """The plan, with a parent that names another file as its sub-plan."""
    name = os.path.relpath(os.path.realpath(path.parent), root)
    name = os.path.normpath(os.path.join(name, path.name))
    if name.startswith(os.pardir):
        raise PlannerError(
            f"{shown(path)}: the revised sub-plan of '{todo_id}' would lie outside {root}; "
            f"name an output file below it"
        )
    items = tuple(
        todo.model_copy(update={"sub_plan": Path(name).as_posix()}) if todo.id == todo_id else todo
        for todo in plan.items
    )
    return plan.model_copy(update={"items": items})


def _write(texts: Mapping[Path, str]) -> None:
    """Write all of them or none."""
    made: list[Path] = []
    try:
        for path, text in texts.items():
            create_file(path, text)
            made.append(path)
    except BaseException:
        for each in made:
            with suppress(OSError):
                each.unlink()
        raise
