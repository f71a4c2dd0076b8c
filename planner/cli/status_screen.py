"""Draws the status tree, and one todo from near."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.cli.screen import Screen, cells, counted, listed, moment, padded
from planner.model.verdicts import Verdict
from planner.rules.cause_words import consequences, is_worth_telling, place
from planner.rules.progress import Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.cli.loading import PlanView
    from planner.model.outcome import Cause, Check, Outcome
    from planner.rules.progress import Node, StatusTree

_MARKS: dict[Standing, tuple[str, str, str]] = {
    Standing.DONE: ("done", "done", "good"),
    Standing.FAILED: ("failed", "failed", "bad"),
    Standing.TESTING: ("testing", "testing", "warn"),
    Standing.BLOCKED: ("blocked", "blocked", "quiet"),
    Standing.ACTIVE: ("active", "in progress", "warn"),
    Standing.PENDING: ("pending", "pending", "quiet"),
}
"""For each standing the field of the glyphs, the word, and the style."""

_VERDICTS = {"passed": "good", "failed": "bad", "flaky": "bad", "blocked": "quiet", "not_run": "quiet"}
_MOST_CHECKS = 40
_NARROWEST_NAME = 12


class _Row(NamedTuple):
    node: Node
    stem: str
    text: str


def show_status(view: PlanView, tree: StatusTree, named: Sequence[Node], depth: int | None) -> None:
    """Write the tree of the plan, or the todos that are named with all that is known of them."""
    screen = Screen()
    for remark in view.remarks:
        screen.remark(remark)
    if not named:
        _head(screen, view, tree)
        _tree(screen, tree.nodes, depth)
        _totals(screen, tree)
        _fix_first(screen, view.document.causes)
    for position, node in enumerate(named):
        if position:
            screen.line()
        show_todo(screen, view, node)
        _tree(screen, (*node.branches, *node.children), depth)
    screen.show()


def _head(screen: Screen, view: PlanView, tree: StatusTree) -> None:
    from planner.edges.latest_outcomes import shown

    title = screen.one_line(tree.title)
    path = screen.one_line(shown(view.loaded.path))
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
    mark = _mark(screen, row.node.standing)
    remark = screen.style(_remark(screen, row.node), "quiet")
    screen.line(f"{screen.style(row.stem, 'quiet')}{text}  {mark}{remark}")


def _mark(screen: Screen, standing: Standing) -> str:
    field, word, style = _MARKS[standing]
    return screen.style(f"{getattr(screen.glyphs, field)} {word}", style)


def _tail(screen: Screen, node: Node) -> int:
    """How many columns stand behind the name."""
    return len(f"  x {_MARKS[node.standing][1]}") + cells(_remark(screen, node))


def _remark(screen: Screen, node: Node) -> str:
    if node.waits:
        return f"  {node.waits}"
    by = f"  by {listed(map(screen.one_line, node.blocked_by), 3)}" if node.blocked_by else ""
    return f"{by}{'' if by else ' '} since {screen.one_line(moment(node.since))}" if node.since else by


def _totals(screen: Screen, tree: StatusTree) -> None:
    counts = tree.counts()
    branches = sum(node.is_branch for node in tree.walk())
    parts = [f"{count} {_MARKS[standing][1]}" for standing, count in counts.items()]
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


def show_todo(screen: Screen, view: PlanView, node: Node) -> None:
    """All that is known of one todo."""
    entry = view.board.entries[node.id]
    name = _name(screen, node).replace(node.id.rpartition("/")[2], node.id, 1)
    mark = _mark(screen, node.standing)
    screen.line(f"{screen.style(name, 'strong')}  {mark}")
    todo = entry.todo
    facts = [
        ("about", todo.intent or ""),
        ("role", (todo.target_agent_role or todo.agent_role).value),
        ("repairs", entry.sibling(todo.parent_id) if todo.parent_id else ""),
        ("after", listed(map(entry.sibling, todo.dependencies))),
        ("waits", node.waits or ""),
        ("blocked", _blocked(node)),
        ("blocks", listed(view.board.blocks(node.id))),
    ]
    for label, text in facts:
        if text:
            screen.labelled(label, text)
    if entry.outcome is not None:
        _outcome(screen, entry.outcome)


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
