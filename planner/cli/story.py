"""The story of a run: each event, what came of it, and what was asked for then, a line each.

Events and actions say themselves what happened and why; a line holds that, by one rule for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from planner.cli.figures import verdict_of
from planner.model.base import qualified
from planner.model.verdicts import TodoLife, Verdict
from planner.text.display import counted, listed
from planner.text.sanitizing import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planner.engine import State
    from planner.model.outcome import Failure, Outcome
    from planner.store.run_log import Step

_LONGEST = 200
"""Characters of one fact."""

_ENDS = {
    TodoLife.DONE: "done",
    TodoLife.FAILED: "failed for good",
    TodoLife.SKIPPED: "skipped",
    TodoLife.HALTED: "halted",
}

_SUBJECTS = ("outcome", "todo_ids", "todo_id", "approval_id", "question_id", "topic", "within")
"""Fields that say whom or what an event or action is about, the first that is there."""

_FACTS = (
    *("role", "attempt", "decision", "answer", "success", "message", "question", "options", "not_before"),
    *("edits", "tokens", "cycles", "files", "touched_files", "new_files", "category", "problems", "result"),
    "by",
)
"""Fields that are told where something stands in them."""

_OF_EVERYBODY = ("plan_submitted", "run_started", "stop_requested", "halt", "finish")


class Line(NamedTuple):
    """One thing that happened in a run, clean, with the rule that made it in brackets."""

    text: str
    about: frozenset[str] = frozenset()
    """The qualified ids of the todos that it concerns; none where it concerns all."""


def tell(step: Step, only: str | None = None) -> Iterator[Line]:
    """Yield what happened in a step of a run, what came of it, and what was asked for then.

    With ``only``, the qualified id of a todo, what concerns neither it nor its branches is left out; what
    concerns everybody stays.
    """
    event, actions, before, after = step
    family = {only}
    for run in (before, after):
        if only is not None and run is not None and only in run.records:
            family |= {*run.records[only].branches}
    told = [(event, event.event), *((action, action.action) for action in actions)]
    lines = [
        Line(_describe(thing, kind), frozenset() if kind in _OF_EVERYBODY else _about(thing, before))
        for thing, kind in told
        if kind != "clock_ticked"  # what comes of it is told
    ]
    changes = () if before is None else _changes(before, after)
    for line in (*lines[:1], *changes, *lines[1:]):
        if only is None or not line.about or not family.isdisjoint(line.about):
            yield line


def _describe(thing: Any, kind: str) -> str:
    """Return ``implement t1_branch_01: coder, attempt 1, because … [a-rule]``."""
    subject = next((value for name in _SUBJECTS if (value := getattr(thing, name, None))), "")
    facts: list[str] = []
    if kind == "verified":
        subject, facts = thing.outcome.todo_id, [_finding(thing.outcome)]
    elif kind in ("plan_submitted", "sub_plan_loaded") and thing.plan is not None:
        subject = subject or thing.plan.todo_list_id
        facts = [counted(len(thing.plan.items), "todo")]
    for name in _FACTS:
        value = getattr(thing, name, None)
        if name == "success" and value is not None:
            facts.append("said to be done" if value else "not done")
        elif name == "edits" and value:
            facts.append(f"edits {listed(each.edit for each in value)}")
        elif value:
            label = (
                "" if name in ("role", "decision", "category", "result") else f"{name.replace('_', ' ')} "
            )
            facts.append(f"{label}{_text(value)}")
    if because := (getattr(thing, "because", None) or "").strip().rstrip("."):
        facts.append(f"because {' '.join(clean(because).split())}")
    rule = getattr(thing, "rule", None)
    head = f"{kind.replace('_', ' ')} {_text(subject)}".rstrip()
    return f"{head}{': ' if facts else ''}{', '.join(facts)}{f' [{_text(rule)}]' if rule else ''}"


def _text(value: object) -> str:
    """Return a fact from outside, clean, on one line and short."""
    if isinstance(value, tuple):
        return listed(map(_text, value))  # pyright: ignore[reportUnknownArgumentType]
    line = " ".join(clean(str(value), limit=20 * _LONGEST).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 2].rstrip()} …"


def _finding(outcome: Outcome) -> str:
    """Return what a verification found."""
    verdict, failure = verdict_of(outcome)
    if failure is not None:
        tests = failure.tests or failure.top_failing_tests
        what = _text(tests[0].rpartition("::")[2] if tests else failure.check_id or "it")
        more = f" and {counted(len(tests) - 1, 'other test')}" if len(tests) > 1 else ""
        head = f": '{_text(failure.stack_trace_head)}'" if failure.stack_trace_head else ""
        return f"{verdict.replace('_', ' ')}, {what}{more} ({_diagnosis(failure)}){head}"
    unproved = [each for each in outcome.checks if each.counts_as is not Verdict.PASSED]
    if verdict is Verdict.PASSED or not unproved:
        return f"{verdict.replace('_', ' ')}, {counted(len(outcome.checks), 'criterion')}"
    return f"{verdict.replace('_', ' ')}, {listed(_text(each.title or each.id) for each in unproved)}"


def _diagnosis(failure: Failure) -> str:
    sure = "" if failure.confidence is None else f", {failure.confidence:.0%}"
    return f"{failure.category}{sure}{f' by {_text(failure.rule)}' if failure.rule else ''}"


def _about(thing: Any, before: State | None) -> frozenset[str]:
    """Return the todos that an event or action concerns."""
    names: set[str] = set(getattr(thing, "todo_ids", ()))
    for name in ("todo_id", "parent_id", "question_id", "approval_id"):
        if held := getattr(thing, name, None):
            names.add(held)
            if before is not None and held in before.questions:
                names.add(before.questions[held].todo_id)
    if outcome := getattr(thing, "outcome", None):
        names.add(outcome.todo_id)
    for edit in getattr(thing, "edits", ()):
        name = getattr(edit, "todo_id", None) or edit.todo.id
        names.add(qualified(getattr(thing, "within", ""), name))
    return frozenset(names)


def _changes(before: State, after: State) -> Iterator[Line]:
    """Yield which todos came to an end, were blocked or freed."""
    ended: dict[str, list[str]] = {}
    for name, record in after.records.items():
        earlier = before.records.get(name)
        if record.life in _ENDS and (earlier is None or earlier.life is not record.life):
            unproved = record.life is TodoLife.DONE and not record.verified
            state = f"{_ENDS[record.life]}{', though no verification has proved it' if unproved else ''}"
            ended.setdefault(state, []).append(name)
    for state, names in ended.items():
        yield _change(names, state)
    earlier_blocked, now = before.blocked(), after.blocked()
    for cause in dict.fromkeys(now.values()):
        names = [name for name, by in now.items() if by == cause and name not in earlier_blocked]
        if names:
            yield _change(names, f"blocked by {cause}", cause)
    freed = [name for name in earlier_blocked if name not in now and not after.records[name].life.is_final]
    if freed:
        yield _change(freed, "no longer blocked")


def _change(names: Iterable[str], state: str, *others: str) -> Line:
    return Line(f"now {state}: {listed(names)}", frozenset((*names, *others)))
