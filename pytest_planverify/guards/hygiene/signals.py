"""The signals of tampering: what each means, how much it weighs, and which todo answers for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.model.evidence import Evidence, HygieneSignal
from planner.model.verdicts import EvidenceKind, Hardness
from pytest_planverify.guards import Guard, Violation
from pytest_planverify.guards.hygiene.grants import Permission

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pytest_planverify.guards.hygiene.grants import Grants

MOST_SIGNALS = 50
"""So many are kept as evidence."""
_LONGEST_EXCERPT = 300

_UNGRANTED = frozenset(
    {"judge-changed", "judge-removed", "judge-unreadable", "test-deleted", "test-skipped", "test-xfailed",
     "assertion-lost", "assertions-fewer", "data-changed"}
)  # fmt: skip
"""What a judge may lose where a todo was granted the file; the other signs hold for everybody."""

RED_LOSSES = frozenset({"test-deleted", "test-skipped", "test-xfailed", "assertions-fewer"})
"""What nobody may do to a test that was red, whoever may change it: it has to become green. To ask for
something else is an edit, and no tampering."""

TRICKS = frozenset(
    {"exit", "skips-its-test", "always-equal", "loose-equality", "asks-for-tests", "reads-call-stack",
     "reads-tests", "special-cases", "answers-by-count", "runs-hidden-code", "start-up-file",
     "shadows-module", "pytest-entry-point", "records-touched", "patches-judge"}
)  # fmt: skip
"""What concerns whoever may have played it, and not whom the file judges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalFinding:
    """A tampering signal in one file."""

    sign: str
    message: str
    path: str
    line: int | None = None
    before: str | None = None
    after: str | None = None
    nodeid: str | None = None
    """The test that it is about, as it was called before."""


def weigh(
    finding: SignalFinding, permission: Permission, is_red: Callable[[str], bool] | None = None
) -> HygieneSignal | None:
    """Return the signal of a finding; ``None`` where the file may hold such.

    ``is_red`` says whether a test failed at the baseline.
    """
    if finding.sign in _UNGRANTED and permission is Permission.GRANTED:
        about = finding.nodeid if finding.sign in RED_LOSSES else None
        if about is None or is_red is None or not is_red(about):
            return None
    where = f"{finding.path}:{finding.line}" if finding.line else finding.path
    return HygieneSignal(
        sign=finding.sign,
        hardness=Hardness.HARD,
        message=f"{finding.message} ({where})",
        path=finding.path,
        line=finding.line,
        nodeid=finding.nodeid,
        before=excerpt(finding.before),
        after=excerpt(finding.after),
    )


def excerpt(text: str | None) -> str | None:
    """Return at most two lines of a text."""
    if text is None:
        return None
    shown = "\n".join([line.strip() for line in text.strip().splitlines() if line.strip()][:2])
    return shown if len(shown) <= _LONGEST_EXCERPT else shown[: _LONGEST_EXCERPT - 1] + "…"


def violations(
    signals: Iterable[HygieneSignal],
    *,
    grants: Grants,
    passed: Collection[str],
    present: Collection[str] | None = None,
) -> Iterator[Violation]:
    """Yield what is held against each todo; one signal is enough.

    ``passed`` are the todos that have passed; they answer for what nobody may have done. ``present`` are
    those of the run, all where it is absent.
    """
    here = {reach.todo_id for reach in grants.todos} if present is None else set(present)
    held: dict[str, list[HygieneSignal]] = {}
    for signal in signals:
        for todo_id in _answering(signal, grants, passed, here):
            held.setdefault(todo_id, []).append(signal)
    for reach in grants.todos:
        if found := held.get(reach.todo_id):
            yield _violation(reach.todo_id, found)


def _answering(
    signal: HygieneSignal, grants: Grants, passed: Collection[str], present: Collection[str]
) -> tuple[str, ...]:
    """Return the todos of the run that a signal is held against.

    A changed judge concerns whom it judges and who may change it; a trick who may have played it, and where
    that todo is no part of the run, everybody who profits.
    """
    named: tuple[str, ...] = ()
    if signal.path is not None:
        if signal.sign in TRICKS:
            named = grants.owners(signal.path)
        else:
            owners = (reach.todo_id for reach in grants.todos if reach.may_change(signal.path))
            named = tuple(dict.fromkeys((*owners, *grants.dependants(signal.path))))
            if named:
                return tuple(each for each in named if each in present)
    found = tuple(each for each in named if each in present)
    return found or tuple(reach.todo_id for reach in grants.todos if reach.todo_id in passed)


def _violation(todo_id: str, signals: list[HygieneSignal]) -> Violation:
    reason = signals[0].message + (f" (and {len(signals) - 1} more)" if len(signals) > 1 else "")
    kept = tuple(signals[:MOST_SIGNALS])
    evidence = Evidence(kind=EvidenceKind.HYGIENE, headline=reason, signals=kept)
    return Violation(todo_id=todo_id, guard=Guard.HYGIENE, reason=reason, evidence=evidence)
