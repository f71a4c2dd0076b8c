"""What is kept where a baseline takes the place of an earlier one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from planner.model.baseline import Remake
from planner.model.plan import TodoStatus
from planner.planfile.record_files import baseline_bytes
from pytest_planverify.baseline.recording import now, user

if TYPE_CHECKING:
    from planner.model.baseline import Baseline
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.baseline.keeping import KeptBaseline


def remade(document: Baseline, earlier: KeptBaseline | None, reason: str) -> Baseline:
    """The new baseline with the reason why it was made, and with those of the times before."""
    replaced = None
    history = ()
    if earlier is not None:
        replaced = "sha256:" + hashlib.sha256(baseline_bytes(earlier.document)).hexdigest()
        history = earlier.document.remade
    entry = Remake(reason=reason.strip(), at=now(), by=user(), replaced=replaced)
    return document.model_copy(update={"remade": (*history, entry)})


def claimed_todos(flat: FlatPlan) -> tuple[str, ...]:
    """The todos that are said to be done."""
    return tuple(todo.id for todo in flat.loaded.plan.items if todo.status is TodoStatus.CLAIMED)
