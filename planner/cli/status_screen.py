"""Draws the status tree, and one todo from near."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.cli.next_screen import advice
from planner.cli.screen import Screen
from planner.model.ids import qualified
from planner.model.verdicts import Verdict
from planner.policy.outcomes import consequences, is_worth_telling, place
from planner.text.display import cells, counted, listed, moment, padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.engine.progress import Node, StatusTree
    from planner.model.outcome import Cause, Check, Outcome
    from planner.store.plan_run import PlanRun

_MARKS: dict[str, tuple[str, str, str]] = {
    "done": ("done", "done", "good"),
    "test_failed": ("failed", "failed", "bad"),
    "testing": ("testing", "testing", "warn"),
    "blocked": ("blocked", "blocked", "quiet"),
    "active": ("active", "in progress", "warn"),
    "ready": ("active", "ready", "strong"),
    "pending": ("pending", "pending", "quiet"),
    "failed": ("failed", "given up", "bad"),
    "skipped": ("blocked", "skipped", "quiet"),
    "halted": ("failed", "halted", "bad"),
}
"""For each state the field of the glyphs, the word, and the style."""

_VERDICTS = {"passed": "good", "failed": "bad", "flaky": "bad", "blocked": "quiet", "not_run": "quiet"}
_MOST_CHECKS = 40
_NARROWEST_NAME = 12


class _Row(NamedTuple):
    node: Node
    stem: str
    text: str


def show_status(run: PlanRun, tree: StatusTree, named: Sequence[Node], depth: int | None) -> None:
    """Write the tree of the plan, or the todos that are named with all that is known of them."""
    screen = Screen()
    told = advice(run)
    for remark in (*told.remarks, *run.remarks):
        screen.remark(remark)
    if told.command is not None:
        screen.line(f"  {screen.style(told.command, 'command')}")
    if not named:
        _head(screen, run, tree)
        _tree(screen, tree.nodes, depth)
        _totals(screen, tree)
        _fix_first(screen, () if run.found.document is None else run.found.document.causes)
    for position, node in enumerate(named):
        if position:
            screen.line()
        show_todo(screen, run, node)
        _tree(screen, (*node.branches, *node.children), depth)
    screen.show()


def _head(screen: Screen, run: PlanRun, tree: StatusTree) -> None:
    from planner.planfile.latest_outcomes import shown

    title = screen.one_line(tree.title)
    path = screen.one_line(shown(run.tree.loaded.path))
    screen.line(f"{screen.style(f'{title} ({tree.done}/{tree.total})', 'strong')}  {path}")


def _tree(screen: Screen, nodes: Sequence[Node], depth: int | None) -> None:
    rows: list[_Row] = []
    _collect(screen, nodes, "", 1, depth, rows)
    widest = max((cells(row.stem) + cells(row.text) for row in rows), default=0)
    tail = max((_tail(screen, row.node) for row in rows), default=0)
    room = min(widest, max(screen.width - tail, screen.width // 2))
    for row in rows:
        _row(screen, row, room)


def _collect(
    screen: Screen, nodes: Sequence[Node], stem: str, level: int, depth: int | None, rows: list[_Row]
) -> None:
    if depth is not None and level > depth:
        return
    for position, node in enumerate(nodes):
        is_last = position == len(nodes) - 1
        glyph = screen.glyphs.last if is_last else screen.glyphs.tee
        rows.append(_Row(node, stem + glyph, _name(screen, node)))
        below = (*node.branches, *node.children)
        deeper = stem + ("   " if is_last else screen.glyphs.stem)
        _collect(screen, below, deeper, level + 1, depth, rows)


def _name(screen: Screen, node: Node) -> str:
    """``Phase 2: Buffer Management (3/3)`` for a parent, the id and the title for others."""
    name = node.id.rpartition("/")[2]
    title = screen.one_line(node.title)
    said = name if title == name else f"{name}  {title}"
    return f"{said} ({node.done}/{node.total})" if node.children else said


def _row(screen: Screen, row: _Row, room: int) -> None:
    left = max(room - cells(row.stem), _NARROWEST_NAME)
    text = padded(screen.clip(row.text, left), left)
    mark = _mark(screen, row.node.state)
    remark = screen.style(_remark(screen, row.node), "quiet")
    screen.line(f"{screen.style(row.stem, 'quiet')}{text}  {mark}{remark}")


def _mark(screen: Screen, state: str) -> str:
    field, word, style = _MARKS[state]
    return screen.style(f"{getattr(screen.glyphs, field)} {word}", style)


def _tail(screen: Screen, node: Node) -> int:
    """How many columns stand behind the name."""
    return len(f"  x {_MARKS[node.state][1]}") + cells(_remark(screen, node))


def _remark(screen: Screen, node: Node) -> str:
    if node.waits:
        return f"  {node.waits}"
    if node.unproved:
        return "  not verified"
    by = f"  by {listed(map(screen.one_line, node.blocked_by), 3)}" if node.blocked_by else ""
    return f"{by}{'' if by else ' '} since {screen.one_line(moment(node.since))}" if node.since else by


def _totals(screen: Screen, tree: StatusTree) -> None:
    counts = tree.counts()
    branches = sum(node.is_branch for node in tree.walk())
    parts = [f"{count} {_MARKS[state][1]}" for state, count in counts.items()]
    parts += [counted(branches, "branch")] if branches else []
    screen.line(", ".join(parts))


def _fix_first(screen: Screen, causes: Sequence[Cause]) -> None:
    """The first root cause, where it is not plain from the todos what to mend first."""
    if not is_worth_telling(causes):
        return
    first = causes[0]
    said = f"{first.category} {place(first)}".strip()
    more = f", before {counted(len(causes) - 1, 'other cause')}" if len(causes) > 1 else ""
    told = f"{said}, {consequences(first)}{more}: {first.headline}"
    screen.labelled("fix first", told, indent=0, room=11)


def show_todo(screen: Screen, run: PlanRun, node: Node) -> None:
    """All that is known of one todo."""
    record = run.state.records[node.id]
    name = _name(screen, node).replace(node.id.rpartition("/")[2], node.id, 1)
    mark = _mark(screen, node.state)
    screen.line(f"{screen.style(name, 'strong')}  {mark}")
    todo = record.todo
    facts = [
        ("about", todo.intent or ""),
        ("role", (todo.target_agent_role or todo.agent_role).value),
        ("repairs", record.parent_id or ""),
        ("after", listed(qualified(record.within, each) for each in todo.dependencies)),
        ("waits", node.waits or ""),
        ("blocked", _blocked(node)),
        ("blocks", listed(name for name, red in run.state.blocked().items() if red == node.id)),
    ]
    for label, text in facts:
        if text:
            screen.labelled(label, text)
    document = run.found.document
    outcomes = () if document is None else document.outcomes
    outcome = next((each for each in outcomes if each.todo_id == node.id), record.outcome)
    if outcome is not None:
        _outcome(screen, outcome)


def _blocked(node: Node) -> str:
    by = f"by {listed(node.blocked_by)}" if node.blocked_by else ""
    return f"{by} since {moment(node.since)}".strip() if node.since else by


def _outcome(screen: Screen, outcome: Outcome) -> None:
    shown = outcome.checks[:_MOST_CHECKS]
    room = max((len(check.id) for check in shown), default=0)
    for check in shown:
        verdict = check.verdict.value
        word = screen.style(f"{verdict:<12}", _VERDICTS.get(verdict, "warn"))
        lead = f"  {word} {screen.one_line(check.id):<{room}}  "
        screen.paragraph(_check(check), indent=2 + 13 + room + 2, first=lead)
    if len(outcome.checks) > _MOST_CHECKS:
        screen.line(f"and {len(outcome.checks) - _MOST_CHECKS} more checks", indent=2)
    failure = outcome.failure_evidence
    if failure is None:
        return
    screen.labelled("failure", f"{failure.category}: {failure.suggestion or failure.because or ''}")
    if failure.rerun:
        screen.line(f"  {screen.style('rerun    ', 'quiet')}{screen.one_line(failure.rerun)}")


def _check(check: Check) -> str:
    said = check.cmd or check.title or check.kind.value
    # Which tests of a blocked todo were run before it was known to be blocked is a matter of time.
    counts = check.tests and check.verdict is not Verdict.BLOCKED
    tests = f" ({counted(len(check.tests), 'test')})" if counts else ""
    is_news = check.reason and check.verdict is not Verdict.BLOCKED
    return f"{said}{tests}{f': {check.reason}' if is_news else ''}"
