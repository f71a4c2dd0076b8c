"""Input and output of checks: the command to be judged, and the judgement with its evidence."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from planner.model.evidence import Evidence
from planner.model.plan import ArtifactSpec, CommandSpec, ManualSpec, MetricSpec
from planner.model.verdicts import Witness
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.model.evidence import AuditEvent
    from planner.model.outcome import TestResult
    from planner.model.verdicts import EvidenceKind, Verdict
    from planner.policy.criteria import Criterion


@dataclass(slots=True, kw_only=True)
class Judgement:
    """The verdict on one criterion with its evidence; for tests, of one run."""

    verdict: Verdict
    tests: tuple[TestResult, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reason: str | None = None
    """One sentence on why the verdict is not ``passed``."""
    duration_ms: int = 0
    exit_code: int | None = None
    events: tuple[AuditEvent, ...] = ()
    """Audit events of its tests."""
    forgiven: bool = False
    """Whether pre-existing failures were disregarded, so that the session's exit status has no meaning."""
    properties: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    witness: Witness = Witness.PLUGIN
    """What a verdict on tests rests on."""
    runs: int = 1
    """Number of runs, including confirmations."""
    reds: int | None = None
    """Number of failed runs; ``None`` while implied by the verdict."""

    @property
    def is_red(self) -> bool:
        """Return whether the verdict counts as failed."""
        return self.verdict.is_red


def title_of(criterion: Criterion) -> str:
    """Return the criterion's title for people: its command, path, comparison or question."""
    match criterion.spec:
        case CommandSpec(cmd=text) | ArtifactSpec(path=text):
            return text
        case ManualSpec(question=text):
            return clean(text, limit=500)
        case MetricSpec(name=name, operator=operator, value=value):
            return f"{name} {operator} {value:.12g}"
        case path:
            return path


def file_of(selection: str) -> str:
    """Return the normalized path of a positional argument of pytest, without test names and parameters."""
    return posixpath.normpath(selection.partition("[")[0].split("::")[0].replace(os.sep, "/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCommand:
    """A command criterion, as far as judging needs it."""

    check_id: str
    limit_seconds: float
    args: tuple[str, ...] = ()
    """Arguments of the command."""
    place: str = ""
    """File and line of the command in the plan."""
    selections: tuple[str, ...]
    expression: str = ""
    """Its ``-k``, ``-m`` and ``--deselect`` options as text."""
    contract_path: str | None = None
    view: Callable[[Judgement], Judgement] | None = None
    """Adjusts a judgement by comparison with the baseline; ``None`` if there is no comparison."""

    def seen(self, judgement: Judgement) -> Judgement:
        """Return the judgement after comparison with the baseline; unchanged if there is none."""
        return judgement if self.view is None else self.view(judgement)

    def evidence(self, kind: EvidenceKind, headline: str, **more: Any) -> Evidence:
        """Return evidence for the criterion; ``more`` are its further fields."""
        return Evidence(kind=kind, check_id=self.check_id, headline=headline, **more)

    def read_back(self, raw: Mapping[str, Any], **more: Any) -> Evidence:
        """Return evidence from facts that a worker recorded; ``more`` are fields that the parent adds.

        Raises ``pydantic.ValidationError`` if the facts are invalid.
        """
        return Evidence.model_validate(
            {**raw, "check_id": self.check_id, "contract_path": self.contract_path, **more}
        )
