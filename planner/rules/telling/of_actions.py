"""What was asked for: one row an action, from the action to its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from planner.model.actions import (
    AskHuman,
    Cancel,
    Finish,
    Halt,
    Implement,
    LoadSubPlan,
    Notify,
    PublishPlan,
    QuestionKind,
    Verify,
)
from planner.rules.branching import RETRIED_ONCE
from planner.rules.edit_phrases import edit_phrase
from planner.rules.telling.sentences import EVERYBODY, Sentence, because, choices, listed, quoted, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.model.actions import Action
    from planner.rules.run_view import RunView

_RETRY = "retry-by-the-same-role"

_Row: TypeAlias = "Callable[[Any, RunView | None, RunView], tuple[str, tuple[str, ...]]]"


def tell_action(action: Action, before: RunView | None, after: RunView) -> Sentence:
    """What an action asks for, and why."""
    text, about = ACTION_ROWS[type(action)](action, before, after)
    why = "" if isinstance(action, Notify) and action.because in action.message else because(action)
    return sentence(f"{text}{why}", *about, rule=action.rule)


def _implement(action: Implement, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    record = after.records.get(action.todo_id)
    role = action.role.value
    if action.parent_id is not None:
        allowed = None if record is None else record.todo.max_debug_attempts
        of = "" if allowed is None else f" of {allowed}"
        branch = f"the branch {action.todo_id} of {action.parent_id}"
        text = f"The {role} is to work on {branch} (attempt {action.attempt}{of})"
        return text, (action.todo_id, action.parent_id)
    if record is not None and action.rule == _RETRY:
        once = record.failure is not None and record.failure.category in RETRIED_ONCE
        allowed = min(record.todo.max_retries, 1) if once else record.todo.max_retries
        text = f"The {role} tries {action.todo_id} again ({record.retries} of {allowed})"
    elif action.attempt > 1:
        text = f"The {role} works on {action.todo_id} again (turn {action.attempt})"
    else:
        text = f"The {role} is to work on {action.todo_id} ('{quoted(action.brief.title)}')"
    return text, (action.todo_id,)


def _verify(action: Verify, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    alone = ", each command in a process of its own" if action.isolate else ""
    later = f", not before {quoted(action.not_before)}" if action.not_before else ""
    return f"{listed(action.todo_ids)} is to be verified{alone}{later}", action.todo_ids


def _cancel(action: Cancel, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    return f"What is under way on {action.todo_id} is to be stopped", (action.todo_id,)


_ASKED: Mapping[QuestionKind, str] = {
    QuestionKind.APPROVE_BRANCH: "whether the branch {id} may be made",
    QuestionKind.APPROVE_EDITS: "whether the plan may be changed ({id})",
    QuestionKind.APPROVE_START: "whether {todo} may be begun ({id})",
}
"""What a person is asked to approve. Other questions are told in their own words."""


def _ask(action: AskHuman, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    if action.kind in _ASKED:
        what = f" {_ASKED[action.kind].format(id=action.question_id, todo=action.todo_id)}"
        edits = "; ".join(quoted(edit_phrase(edit)) for edit in action.edits)
        what += f": {edits}" if edits and action.kind is QuestionKind.APPROVE_EDITS else ""
    else:
        whom = f" about {action.todo_id}" if action.todo_id else ""
        what = f"{whom}: '{quoted(action.question)}' ({action.question_id})"
    text = f"A person is asked{what}{choices(action.options)}"
    return text, tuple(filter(None, (action.todo_id, action.question_id)))


def _notify(action: Notify, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    said = quoted(action.message.removeprefix(f"{action.topic}: "))
    text = f"The {action.to.value} hears by {quoted(action.topic)}: '{said}'"
    return text, () if action.todo_id is None else (action.todo_id,)


def _publish(action: PublishPlan, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    prefix = f"{action.within}/" if action.within else ""
    inside = f" of {action.within}" if action.within else ""
    what = "; ".join(quoted(edit_phrase(edit)) for edit in action.edits)
    changed = (getattr(edit, "todo_id", None) for edit in action.edits)
    about = tuple(f"{prefix}{name}" for name in changed if name)
    return f"The plan{inside} now has version {action.version} ({what})", about


def _load(action: LoadSubPlan, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    name = action.sub_plan or action.sub_project_id
    where = f" ({quoted(name)})" if name else ""
    return f"The sub-plan of {action.todo_id}{where} is to be loaded", (action.todo_id,)


def _halt(action: Halt, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    culprits = f" at {listed(action.todo_ids)}" if action.todo_ids else ""
    kind = f" ({action.category})" if action.category is not None else ""
    return f"Everything stops{culprits}{kind}", (*action.todo_ids, *EVERYBODY)


def _finish(action: Finish, before: RunView | None, after: RunView) -> tuple[str, tuple[str, ...]]:
    return f"The plan is {action.result}", EVERYBODY


ACTION_ROWS: Mapping[type[Action], _Row] = {
    Implement: _implement,
    Verify: _verify,
    Cancel: _cancel,
    AskHuman: _ask,
    Notify: _notify,
    PublishPlan: _publish,
    LoadSubPlan: _load,
    Halt: _halt,
    Finish: _finish,
}
"""What tells of each action: ``(action, before, after)`` to its words and the todos that it concerns."""
