"""What has come of an event: the todos whose lives changed, where neither event nor action tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.actions import AskHuman, Halt, Verify
from planner.model.events import ApprovalGiven, ConflictFound, QuestionAnswered, Verified
from planner.model.ids import qualified
from planner.model.life import PlanState, TodoLife
from planner.rules.telling.sentences import EVERYBODY, Sentence, listed, sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.model.actions import Action
    from planner.model.events import Event
    from planner.rules.run_view import RunView, TodoView


def tell_moves(
    event: Event, actions: Sequence[Action], before: RunView, after: RunView, only: str | None = None
) -> Iterator[Sentence]:
    """The todos that were done, blocked, freed, failed or skipped; ``only`` looks at that one alone."""
    moved = changed(event, actions, before, after) if only is None else (only,)
    failed = tuple(name for name in moved if _has_failed(name, before, after)) if only is None else ()
    groups: dict[tuple[TodoLife, bool, tuple[str, ...]], list[str]] = {}
    for todo_id in moved:
        record, earlier = after.records.get(todo_id), before.records.get(todo_id)
        if record is None or record.life not in _WORDS or (earlier and earlier.life is record.life):
            continue
        skipped = record.life is TodoLife.SKIPPED
        causes = (failed or blockers(after, todo_id)) if skipped else ()
        groups.setdefault((record.life, record.verified, causes), []).append(todo_id)
    for (life, verified, causes), todo_ids in groups.items():
        proved = "" if verified else ", though no verification has proved it"
        one, several = len(todo_ids) == 1, len(causes) > 1
        text = _WORDS[life].format(
            names=listed(todo_ids),
            be="is" if one else "are",
            have="has" if one else "have",
            cause=listed(causes) or "something that failed",
            stand="stand" if several else "stands",
            proved=proved,
        )
        yield sentence(text, *todo_ids, *causes)
    yield from _tell_blocked(before, after, only)
    if only is None and after.plan_state is not before.plan_state:
        words = _OF_PLAN.get(after.plan_state)
        if words is not None:
            yield sentence(words, *EVERYBODY)


def _tell_blocked(before: RunView, after: RunView, only: str | None) -> Iterator[Sentence]:
    """Who cannot be begun any more, or can be again: only what is red decides that."""
    if before.reds is after.reds:
        return
    earlier, now = before.blocked(), after.blocked()
    by_cause: dict[str, list[str]] = {}
    for name, cause in now.items():
        if name not in earlier and only in (None, name):
            by_cause.setdefault(cause, []).append(name)
    for cause, names in by_cause.items():
        yield sentence(f"{listed(names)} {_is_or_are(names)} blocked by {cause}", *names, cause)
    freed = [
        name
        for name in earlier
        if name not in now and only in (None, name) and not after.records[name].life.is_final
    ]
    if freed:
        yield sentence(f"{listed(freed)} {_is_or_are(freed)} no longer blocked", *freed)


def changed(event: Event, actions: Sequence[Action], before: RunView, after: RunView) -> Sequence[str]:
    """The todos whose records an event has replaced.

    They are looked for from those that the event and its actions name to what depends on them. Only where
    others have come to their end, as a todo does that needs no test when its turn comes, all are looked at.
    """
    found = tuple(_reached(_started_from(event, actions, before), before, after))
    ended = sum(_has_ended(name, before, after) for name in found)
    if ended == before.unfinished - after.unfinished:
        return found
    replaced = [name for name in after.records if after.records[name] is not before.records.get(name)]
    return sorted(replaced, key=lambda name: after.records[name].rank)


def _reached(start: Iterable[str], before: RunView, after: RunView) -> Iterator[str]:
    waiting, seen = list(start), set[str]()
    for todo_id in waiting:  # it grows meanwhile
        if todo_id in seen:
            continue
        seen.add(todo_id)
        record = after.records.get(todo_id)
        if record is None or record is before.records.get(todo_id):
            continue
        yield todo_id
        waiting += after.dependents.get(todo_id, ())
        waiting += (*record.children, *record.branches)
        waiting += (name for name in (record.parent_id, record.within) if name)


def _has_failed(todo_id: str, before: RunView, after: RunView) -> bool:
    record, earlier = after.records[todo_id], before.records.get(todo_id)
    is_new = earlier is None or earlier.life is not record.life
    return is_new and record.life in (TodoLife.FAILED, TodoLife.HALTED) and not record.is_branch


def _has_ended(todo_id: str, before: RunView, after: RunView) -> bool:
    """Whether a todo, and no branch, has come to its end."""
    record, earlier = after.records[todo_id], before.records.get(todo_id)
    return not record.is_branch and record.life.is_final and not (earlier and earlier.life.is_final)


def blockers(run: RunView, todo_id: str) -> tuple[str, ...]:
    """The failed todos in the way of another, whatever lies between; of a parent, those of its sub-plan."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [todo_id]
    for each in waiting:  # it grows meanwhile
        record = run.records.get(each)
        if record is None:
            continue
        for name in (*waits_for(run, record), *record.children):
            other = run.records.get(name)
            if other is None or name in seen:
                continue
            seen.add(name)
            is_red = name in run.reds or other.life in (TodoLife.FAILED, TodoLife.HALTED)
            if is_red and not other.children:
                found[name] = None
            else:
                waiting.append(name)
    return tuple(found)


def waits_for(run: RunView, record: TodoView) -> tuple[str, ...]:
    """The todos that one depends on and that are not done."""
    names = (qualified(record.within, name) for name in record.todo.dependencies)
    return tuple(
        name
        for name in names
        if (other := run.records.get(name)) is None or other.life is not TodoLife.DONE
    )


def _started_from(event: Event, actions: Sequence[Action], before: RunView) -> Iterator[str]:
    """The todos that an event and its actions name."""
    match event:
        case Verified():
            yield event.outcome.todo_id
        case ConflictFound():
            yield from event.todo_ids
        case ApprovalGiven() | QuestionAnswered():
            asked = event.approval_id if isinstance(event, ApprovalGiven) else event.question_id
            question = before.questions.get(asked)
            yield from (asked,) if question is None else (question.todo_id, asked)
        case _:
            named = getattr(event, "todo_id", None)
            if isinstance(named, str):
                yield named
    for action in actions:
        if isinstance(action, Verify | Halt):
            yield from action.todo_ids
        elif isinstance(action, AskHuman):
            yield from (action.todo_id, action.question_id)
        else:
            named = getattr(action, "todo_id", None)
            if isinstance(named, str):
                yield named


def _is_or_are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


_WORDS: Mapping[TodoLife, str] = {
    TodoLife.DONE: "{names} {be} done{proved}",
    TodoLife.FAILED: "{names} {have} failed for good",
    TodoLife.SKIPPED: "{names} {be} skipped, as {cause} {stand} in the way for good",
    TodoLife.HALTED: "{names} {be} halted",
}
"""What is said of todos that have come to a life; events and actions tell of the others."""

_OF_PLAN: Mapping[PlanState, str] = {
    PlanState.AWAITING_REVIEW: "Nothing goes on until a person has answered",
}
