"""Writes decisions as JSON: the same bytes for the same decisions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from planner.edges.plain_json import plainly

if TYPE_CHECKING:
    from planner.model.decision import Decisions


def render_decisions(decisions: Decisions) -> str:
    """The JSON text. What is absent is left out; a todo is written as a plan file writes it.

    Beyond ASCII everything is escaped, so that the bytes do not depend on the terminal's encoding.
    """
    return json.dumps(plainly(decisions), indent=2, sort_keys=True, allow_nan=False) + "\n"
