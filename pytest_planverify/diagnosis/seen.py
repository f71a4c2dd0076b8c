"""One diagnosed failure of a run, as it is put together with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.evidence import Evidence
    from planner.model.outcome import Diagnosis
    from pytest_planverify.diagnosis.todo_order import TodoKey


@dataclass(frozen=True, slots=True)
class Seen:
    """A failure, its diagnosis, and the todo that it fails."""

    todo: TodoKey
    evidence: Evidence
    diagnosis: Diagnosis
    root: str = ""
    """Names the folder that its paths are relative to: equal paths of two folders are two files."""

    @property
    def shown_by(self) -> tuple[str, ...]:
        """The tests that show it, or the file whose tests could not be collected."""
        evidence = self.evidence
        return evidence.tests or ((evidence.nodeid,) if evidence.nodeid else ())
