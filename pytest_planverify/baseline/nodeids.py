"""Node ids as a baseline has them: relative to the root of the top plan, also those of a sub-plan."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.planfile.tree import FlatPlan


def below(flat: FlatPlan, todo_id: str, nodeid: str) -> str:
    """A node id of a todo, which starts at the root of its own plan file, from the top plan's root."""
    own, top = flat.owner(todo_id).root, flat.loaded.root
    if own == top:
        return nodeid.removeprefix("./")
    path, colons, rest = nodeid.partition("::")
    return f"{os.path.normpath(os.path.join(os.path.relpath(own, top), path))}{colons}{rest}"
