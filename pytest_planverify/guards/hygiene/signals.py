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

NOWHERE = frozenset[Permission]()
ALWAYS = frozenset(Permission)
UNGRANTED = frozenset({Permission.FORBIDDEN, Permission.DEFAULT})

LOSSES: dict[str, tuple[frozenset[Permission], str]] = {
    "judge-changed": (UNGRANTED, "A file that judges was changed without permission"),
    "judge-removed": (UNGRANTED, "A file that judges is gone"),
    "judge-unreadable": (UNGRANTED, "A file that judges can no longer be parsed"),
    "test-deleted": (UNGRANTED, "A test is gone, or is no longer collected"),
    "test-skipped": (UNGRANTED, "A test is skipped that was run"),
    "test-xfailed": (UNGRANTED, "A test is expected to fail that was not"),
    "test-deselected": (ALWAYS, "Tests are kept from being collected or run"),
    "assertion-lost": (UNGRANTED, "A test asserts something else than it did"),
    "assertions-fewer": (UNGRANTED, "A test asserts less than it did"),
    "assertion-void": (ALWAYS, "A test asserts nothing any more, or only what always holds"),
    "assertion-swallowed": (ALWAYS, "A failing assertion is caught"),
    "fixture-overridden": (ALWAYS, "A fixture of tests that may not be changed is another one"),
    "outcome-hook": (ALWAYS, "A hook of pytest changes outcomes, or which tests are run"),
    "plugin-added": (ALWAYS, "A plugin of pytest was added or taken out"),
    "configuration-narrowed": (ALWAYS, "pytest's configuration selects fewer tests, or checks less"),
    "data-changed": (UNGRANTED, "Data that tests read, or a contract, says something else"),
    "plan-loosened": (ALWAYS, "The plan asks for less, or permits more"),
}
"""What a judge can lose, where that counts as tampering, and the meaning for the documentation."""

RED_LOSSES = frozenset({"test-deleted", "test-skipped", "test-xfailed", "assertions-fewer"})
"""What nobody may do to a test that was red, whoever may change it: it has to become green. To ask for
something else is an edit, and no tampering."""

TRICKS: dict[str, str] = {
    "exit": "Code ends the process that judges it",
    "skips-its-test": "Product code skips or fails the test that runs it, or speaks to pytest",
    "always-equal": "A comparison agrees with everything",
    "loose-equality": "A kind of number, text or list equals what it is not",
    "asks-for-tests": "Code asks whether tests are running",
    "reads-call-stack": "Code decides by who called it, or by what else is in memory",
    "reads-tests": "Product code reads the tests or what they expect",
    "special-cases": "Answers to the inputs of the tests are written down",
    "answers-by-count": "The answer to so many calls is written down",
    "runs-hidden-code": "Code is run that stands encoded in its source",
    "start-up-file": "A file runs at the start of every interpreter",
    "shadows-module": "A file hides pytest or another module that tests import",
    "pytest-entry-point": "The project makes itself a plugin of pytest",
    "records-touched": "Records of the verifier are among the changes",
}
"""What is no work, whoever may change the file."""

RUN_SIGNALS: dict[str, str] = {
    "patches-judge": "A part of pytest, builtins or the standard library stays replaced",
    "hook-added": "A hook of pytest is implemented in a file that nobody may change",
    "test-vanished": "A test that a criterion had is no longer collected",
    "test-skipped-since": "A test that was red is skipped or expected to fail",
    "body-not-run": "A test passed, and its function was never called",
    "report-overturned": "A test failed, and was reported as something else",
    "exit-status-overturned": "A session with failed tests returned 0",
    "witness-silenced": "A session ended and did not tell what it was made of",
    "artifact-not-made": "An artifact lay there, and its command did not write it",
}
"""What only a run can show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found in one file."""

    sign: str
    message: str
    path: str
    line: int | None = None
    before: str | None = None
    after: str | None = None
    nodeid: str | None = None
    """The test that it is about, as it was called before."""


def weigh(
    finding: Finding, permission: Permission, is_red: Callable[[str], bool] | None = None
) -> HygieneSignal | None:
    """Return the signal of a finding; ``None`` where the file may hold such.

    ``is_red`` says whether a test failed at the baseline.
    """
    counts = ALWAYS if finding.sign in TRICKS else LOSSES[finding.sign][0]
    about = finding.nodeid
    if permission not in counts and not (
        finding.sign in RED_LOSSES and is_red is not None and about is not None and is_red(about)
    ):
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
    """Yield what is held against each todo: one hard signal is enough, soft ones never are.

    ``passed`` are the todos that have passed; they answer for what nobody may have done. ``present`` are
    those of the run, all where it is absent.
    """
    here = {reach.todo_id for reach in grants.todos} if present is None else set(present)
    held: dict[str, list[HygieneSignal]] = {}
    for signal in signals:
        for todo_id in _answering(signal, grants, passed, here):
            held.setdefault(todo_id, []).append(signal)
    for reach in grants.todos:
        found = held.get(reach.todo_id, ())
        if any(each.hardness is Hardness.HARD for each in found):
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
        if signal.sign in TRICKS or signal.sign == "patches-judge":
            named = grants.owners(signal.path)
        else:
            owners = (reach.todo_id for reach in grants.todos if reach.may_change(signal.path))
            named = tuple(dict.fromkeys((*owners, *grants.dependants(signal.path))))
            if named:
                return tuple(each for each in named if each in present)
    found = tuple(each for each in named if each in present)
    return found or tuple(reach.todo_id for reach in grants.todos if reach.todo_id in passed)


def _violation(todo_id: str, signals: Iterable[HygieneSignal]) -> Violation:
    ordered = sorted(signals, key=lambda each: each.hardness is not Hardness.HARD)
    more = f" (and {len(ordered) - 1} more)" if len(ordered) > 1 else ""
    reason = f"{ordered[0].message}{more}"
    return Violation(
        todo_id=todo_id,
        guard=Guard.HYGIENE,
        reason=reason,
        evidence=Evidence(
            kind=EvidenceKind.HYGIENE, headline=reason, signals=tuple(ordered[:MOST_SIGNALS])
        ),
    )
