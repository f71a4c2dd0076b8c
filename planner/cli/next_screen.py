"""Shows decisions to people: what is halted, repaired, ready, blocked, and what waits for them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from planner.cli import words
from planner.cli.screen import Screen
from planner.model.decision import Approval, Move, NeedKind
from planner.model.edits import AddContext
from planner.rules.approving import edits_with_ids
from planner.text.display import counted, listed, moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from planner.cli.next_plan import Revision
    from planner.model.decision import Decisions, HumanNeed, Repair

MOST_REPAIRS = 25
"""So many repairs that carry no instructions are shown in full."""

MOST_LINES = 20
"""So many lines of each list are shown; --json has all."""

_BUSY = (Move.BRANCH, Move.RETRY, Move.SEPARATE)
_STYLES = {
    Move.HALT: "bad",
    Move.ESCALATE: "bad",
    Move.RETRY_LATER: "warn",
    Move.VERIFY: "warn",
    Move.WAIT: "quiet",
}
_SAID_WITH_REPAIR = (NeedKind.APPROVE_BRANCH, NeedKind.APPROVE_EDIT)
"""Needs that stand with the repair already."""


def show_decisions(decisions: Decisions, plan: Path, revision: Revision | None = None) -> None:
    """Write all of it to standard output."""
    screen = Screen()
    _head(screen, decisions)
    _halt(screen, decisions)
    _repairs(screen, decisions, plan)
    _ready(screen, decisions)
    _blocked(screen, decisions)
    _needs(screen, decisions.needs_human)
    for notice in decisions.notices[:MOST_LINES]:
        screen.paragraph(
            f"{notice.message} (for the {notice.to})", first=_label(screen, "notice"), indent=9
        )
    if revision is not None:
        screen.line()
        revision.show(screen)
    screen.show()


def _head(screen: Screen, decisions: Decisions) -> None:
    progress = decisions.progress
    state = words.STATES[decisions.state]
    counts = [
        f"{count} {word}"
        for count, word in (
            (progress.failed, "failed"),
            (progress.blocked, "blocked"),
            (progress.unfinished, "open"),
        )
        if count
    ]
    name = screen.one_line(decisions.plan.todo_list_id)
    styled = screen.style(state, words.STATE_STYLES.get(decisions.state, "strong"))
    told = ", ".join([f"{progress.done} of {counted(progress.total, 'todo')} done", *counts])
    screen.line(f"{screen.style(name, 'strong')}  {styled}: {told}")
    if decisions.run_id:
        ended = f", which ended {moment(decisions.decided_at)}" if decisions.decided_at else ""
        said = screen.one_line(f"from the run {decisions.run_id}{ended}")
        screen.line(screen.style(said, "quiet"))


def _halt(screen: Screen, decisions: Decisions) -> None:
    halt = decisions.halt
    if halt is None:
        return
    screen.line()
    screen.line(screen.style(f"HALT  {halt.category}: {words.CATEGORIES[halt.category]}", "bad"))
    screen.labelled("why", f"{halt.because} [{halt.rule}]")
    if halt.todo_ids:
        screen.labelled("todos", listed(halt.todo_ids))


def _repairs(screen: Screen, decisions: Decisions, plan: Path) -> None:
    waiting = [each for each in decisions.repairs if each.move is Move.WAIT and not each.edits]
    shown = 0
    for repair in decisions.repairs:
        if repair.move is Move.WAIT and not repair.edits:
            continue
        if repair.move not in _BUSY:
            shown += 1
            if shown > MOST_REPAIRS:
                continue
        screen.line()
        _repair(screen, repair, plan)
    if shown > MOST_REPAIRS:
        screen.line()
        screen.line(f"and {shown - MOST_REPAIRS} more; --json has all of them")
    _heading(screen, "Waiting", len(waiting))
    for repair in waiting[:MOST_LINES]:
        screen.paragraph(f"{repair.todo_id}: {repair.because} [{repair.rule}]", first="  ", indent=4)
    _rest(screen, len(waiting))


def _repair(screen: Screen, repair: Repair, plan: Path) -> None:
    name = screen.style(screen.one_line(repair.todo_id), "strong")
    mark = screen.style(screen.glyphs.failed, "bad")
    if repair.move in (Move.VERIFY, Move.WAIT, Move.RETRY_LATER):
        mark = screen.style(screen.glyphs.testing, "warn")
    about = ""
    if repair.category is not None:
        sure = f", {repair.confidence:.0%} sure" if repair.confidence is not None else ""
        about = f"  {repair.category}: {words.CATEGORIES[repair.category]}{sure}"
    screen.line(f"{mark} {name}{screen.style(about, _STYLES.get(repair.move, 'bad'))}")
    screen.labelled("do", words.move(repair))
    screen.labelled("why", f"{repair.because} [{repair.rule}]")
    failure = repair.failure
    if failure is not None:
        if failure.stack_trace_head and not repair.branch:
            screen.labelled("says", failure.stack_trace_head)
        if failure.suggestion and not repair.branch:
            screen.labelled("fix", failure.suggestion)
    if repair.blocks:
        screen.labelled("blocks", listed(repair.blocks))
    _edits(screen, repair)
    _approvals(screen, repair, plan)
    _instructions(screen, repair)


def _edits(screen: Screen, repair: Repair) -> None:
    label = "edits"
    for edit, approval_id in edits_with_ids(repair):
        asks = f" (needs approval: {approval_id})" if approval_id is not None else ""
        screen.labelled(label, f"{words.edit(edit)}{asks} [{edit.rule}]")
        label = ""


def _approvals(screen: Screen, repair: Repair, plan: Path) -> None:
    """The commands that approve what waits for it; of the branch first, without which no edit applies."""
    wanted = [name for _, name in edits_with_ids(repair) if name is not None]
    if repair.approval is Approval.NEEDED:
        wanted.insert(0, repair.branch_id or repair.todo_id)
    label = "approve"
    for name in wanted:
        command = f"planner next {shlex.quote(str(plan))} --approve {shlex.quote(name)} --output FILE"
        screen.line(
            f"  {screen.style(f'{label:<9}', 'warn')}{screen.style(screen.one_line(command), 'command')}"
        )
        label = ""
    if repair.approval is Approval.GRANTED:
        screen.labelled("approved", repair.branch_id or repair.todo_id)


def _instructions(screen: Screen, repair: Repair) -> None:
    told = next((edit.text for edit in repair.edits if isinstance(edit, AddContext)), None)
    if told is None and repair.branch is not None:
        told = repair.branch.debug_instructions
    if told:
        screen.line(f"  {screen.style(f'instructions of {repair.branch_id or repair.todo_id}:', 'quiet')}")
        screen.quoted(told)


def _ready(screen: Screen, decisions: Decisions) -> None:
    _heading(screen, "Ready", len(decisions.ready))
    for each in decisions.ready[:MOST_LINES]:
        title = f" {screen.one_line(each.title)}" if each.title and each.title != each.todo_id else ""
        name = screen.style(screen.one_line(each.todo_id), "strong")
        screen.line(f"  {name}{title}")
        screen.paragraph(f"for the {each.role}: {each.because}", indent=4)
    _rest(screen, len(decisions.ready))


def _blocked(screen: Screen, decisions: Decisions) -> None:
    _heading(screen, "Blocked", len(decisions.blocked))
    for each in decisions.blocked[:MOST_LINES]:
        by = f" by {listed(each.by, 4)}" if each.by else ""
        since = f", since {moment(each.since)}" if each.since else ""
        screen.paragraph(f"{each.todo_id}{by}{since}", first="  ", indent=4)
    _rest(screen, len(decisions.blocked))


def _needs(screen: Screen, needs: Sequence[HumanNeed]) -> None:
    _heading(screen, "Needs a person", len(needs))
    for need in needs[:MOST_LINES]:
        about = f"{need.todo_id}: " if need.todo_id else ""
        label = f"  {screen.style(f'{words.NEEDS[need.kind]:<9}', 'warn')}"
        if need.kind in _SAID_WITH_REPAIR:
            screen.paragraph(f"{about}{need.what} ({need.approval_id})", first=label, indent=11)
            continue
        screen.paragraph(f"{about}{need.what}", first=label, indent=11)
        screen.paragraph(need.why, indent=11)
        if need.how:
            screen.line(f"{' ' * 11}{screen.style(screen.one_line(need.how), 'command')}")
    _rest(screen, len(needs))


def _heading(screen: Screen, text: str, count: int) -> None:
    if count:
        screen.line()
        screen.line(screen.style(f"{text} ({count})", "strong"))


def _rest(screen: Screen, count: int) -> None:
    if count > MOST_LINES:
        screen.line(f"  and {count - MOST_LINES} more; --json has all of them")


def _label(screen: Screen, text: str) -> str:
    return f"  {screen.style(f'{text:<7}', 'warn')}"
