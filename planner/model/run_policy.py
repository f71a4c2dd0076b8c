"""How one run of the engine is to go: what the operator decides, beside what the plan allows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.model.base import ReadValue


class RunPolicy(ReadValue):
    """Settings of a run. They are part of its log, so that a replay has them too."""

    jobs: Annotated[int, Field(ge=1)] | None = None
    """So many todos are worked on at once, branches included; as many as are ready where it is absent."""
    environment_retries: Annotated[int, Field(ge=0, le=1000)] = 3
    """So often a todo is verified again for want of something in the environment, or because a run could
    not tell; then a person is asked."""
    environment_delay_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """How long to wait before the first of these; each wait is twice as long as the one before."""
    tools: tuple[str, ...] = ()
    """Type checkers and linters that the project is set up for."""
    driven: bool = True
    """Whether a driver reports the turns of work. Where only verifications are told, as by
    ``planner next``, a turn has no time limit, for nobody says when it began."""
    allow_unproved: bool = False
    """Whether an outcome without checks, as a foreign driver may tell it, can make a todo done; the todo is
    then shown as not verified."""
    fingerprint: str | None = None
    """Of the repository: what memory is keyed by."""
