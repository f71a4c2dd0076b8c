"""Blesses changes of files that judge, as they are now, with a reason that is kept."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from planner.errors import BaselineError
from planner.model.baseline import Acceptance, JudgeKind
from pytest_planverify.baseline import load_baseline
from pytest_planverify.baseline.kept_baseline import replace_document
from pytest_planverify.baseline.kinds import judges_of
from pytest_planverify.baseline.record import now, user
from pytest_planverify.baseline.work_tree import WorkTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.kept_baseline import KeptBaseline


def accept_changes(
    flat: FlatPlan, todo_id: str, reason: str, only: Sequence[str] | None = None
) -> tuple[Acceptance | None, str | None]:
    """Accept the files that judge and differ from the baseline; ``only`` names some of them.

    Returns what was accepted, ``None`` where nothing differs, and why git has no copy of the new baseline.
    Raises :class:`planner.errors.BaselineError`.
    """
    root = flat.loaded.root
    kept = load_baseline(root, flat.loaded.plan.todo_list_id)
    if kept is None:
        raise BaselineError("there is no baseline of this plan; make one: planverify baseline PLAN")
    if kept.doubts:
        raise BaselineError(
            f"{kept.doubts[0]}; nothing is accepted on top of that: make the baseline anew with --force"
        )
    changed = changed_judges(flat, kept)
    if only:
        wanted = {os.path.relpath(os.path.abspath(path), root) for path in only} | set(only)
        unknown = next((path for path in only if not _names_any(path, root, changed)), None)
        if unknown is not None:
            names = ", ".join(changed) or "none"
            raise BaselineError(f"--file {unknown}: it judges nothing or is as it was; changed are {names}")
        changed = {path: digest for path, digest in changed.items() if path in wanted}
    if not changed:
        return None, None
    acceptance = Acceptance(todo_id=todo_id, reason=reason, at=now(), by=user(), files=changed)
    document = kept.document.model_copy(update={"accepted": (*kept.document.accepted, acceptance)})
    return acceptance, replace_document(kept, document)


def changed_judges(flat: FlatPlan, kept: KeptBaseline) -> dict[str, str | None]:
    """The files that judge and are not as they were, with their sha256, and are not accepted yet."""
    tree = WorkTree(flat.loaded.root)
    then, now_there = kept.document.files, tree.digests()
    judges = judges_of(flat, {name.partition("::")[0] for name in kept.document.tests}, tree)
    found: dict[str, str | None] = {}
    for path in sorted({*then, *now_there}):
        before = then[path].sha256 if path in then else None
        after = now_there.get(path)
        kind = then[path].kind if path in then else judges.kind_of(path)
        if before != after and kind is not JudgeKind.PRODUCT and not kept.accepted(path, after):
            found[path] = after
    return found


def _names_any(path: str, root: os.PathLike[str], changed: dict[str, str | None]) -> bool:
    return path in changed or os.path.relpath(os.path.abspath(path), root) in changed
