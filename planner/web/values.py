"""What the interface for programs takes and gives, beside the values of the planner itself."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Run(BaseModel):
    """A run of the engine."""

    model_config = ConfigDict(extra="ignore")

    run_id: str
    plan_id: str
    path: str
    goal: str
    state: str
    opened: str
    """RFC 3339, as all times."""
    closed: str | None
    blocked: list[str]
    """The todos that wait for a person or for what is missing."""
    blocked_since: str | None


class Said(BaseModel):
    """An answer, or a decision on what is proposed. Changes count with ``modify``."""

    model_config = ConfigDict(extra="forbid")

    digest: str = ""
    """Of the question, as it was shown: a decision holds for nothing else."""
    answer: str | None = Field(default=None, max_length=10_000)
    decision: Literal["approve", "approve_similar", "reject", "modify"] | None = None
    by: str | None = Field(default=None, max_length=100)
    because: str | None = Field(default=None, max_length=10_000)
    role: str | None = None
    instructions: str | None = Field(default=None, max_length=10_000)
    allowed_files: list[str] | None = None
    max_debug_attempts: int | None = Field(default=None, ge=1, le=100)

    def as_form(self) -> dict[str, str]:
        """Return it as the fields of the form on the page."""
        given = self.model_dump(exclude_none=True)
        if self.allowed_files is not None:
            given["allowed_files"] = " ".join(self.allowed_files)
        return {name: str(value) for name, value in given.items()}


class Told(BaseModel):
    """What was recorded, or why nothing was."""

    told: list[str]
