"""Request and result of a check: the verdict, its reason, and the facts behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from planner.model.evidence import Evidence
from planner.model.plan import ArtifactSpec, CommandSpec, ManualSpec, MetricSpec
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.model.evidence import AuditEvent
    from planner.model.journal import RestsOn
    from planner.model.outcome import Check, TestResult
    from planner.model.verdicts import EvidenceKind, Verdict
    from planner.policy.criteria import Criterion


@dataclass(slots=True, kw_only=True)
class Judgement:
    """The verdict on one criterion, and what it rests on; of tests, on one run of them."""

    verdict: Verdict
    tests: tuple[TestResult, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    reason: str | None = None
    """One sentence on why the verdict is not ``passed``."""
    duration_ms: int = 0
    exit_code: int | None = None
    events: tuple[AuditEvent, ...] = ()
    """What its tests reached for outside their process."""
    forgiven: bool = False
    """What was red was so before the work began, and is not counted: the session's status says nothing."""
    properties: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    runs: int = 1
    """How often the tests were run, confirmation included."""
    reds: int | None = None
    """How often they were red; ``None`` as long as that follows from the verdict."""

    @property
    def is_red(self) -> bool:
        """Return whether it counts as failed."""
        return self.verdict.is_red


def title_of(criterion: Criterion) -> str:
    """Return what a person calls the criterion: its command, path, comparison or question."""
    match criterion.spec:
        case CommandSpec(cmd=text) | ArtifactSpec(path=text):
            return text
        case ManualSpec(question=text):
            return clean(text, limit=500)
        case MetricSpec(name=name, operator=operator, value=value):
            return f"{name} {operator} {value:.12g}"
        case path:
            return path


@dataclass(slots=True, kw_only=True)
class CheckRun:
    """One criterion with its verdict and the evidence behind it."""

    check: Check
    evidence: tuple[Evidence, ...] = ()
    properties: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    rests_on: RestsOn | None = None
    """The files that the verdict rests on; ``None`` where nobody knows, so on all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCommand:
    """The part of a criterion that matters for its verdict."""

    check_id: str
    limit_seconds: float
    args: tuple[str, ...] = ()
    """The command's own arguments."""
    place: str = ""
    """File and line of the plan that the command stands in."""
    selections: tuple[str, ...]
    expression: str = ""
    """``-k``, ``-m`` and ``--deselect`` as the command gives them."""
    contract_path: str | None = None
    view: Callable[[Judgement], Judgement] | None = None
    """What a comparison with the baseline makes of what the tests said."""

    def seen(self, judgement: Judgement) -> Judgement:
        """Return the judgement as a comparison with the baseline makes it."""
        return judgement if self.view is None else self.view(judgement)

    def evidence(self, kind: EvidenceKind, headline: str, **more: Any) -> Evidence:
        """Return evidence of the criterion."""
        return Evidence(kind=kind, check_id=self.check_id, headline=headline, **more)

    def read_back(self, raw: Mapping[str, Any], **more: Any) -> Evidence:
        """Return what a session wrote down, read back into the model; ``more`` is what the parent knows."""
        return Evidence.model_validate(
            {**raw, "check_id": self.check_id, "contract_path": self.contract_path, **more}
        )
