"""``planner status``: the tree of todos with states and progress, or one todo in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import command
from planner.cli.arguments import JsonOption, LogOption, OutcomesOption, TodosArgument, choose_plan, option
from planner.cli.next import failure_facts, known_todo, outcome_of, readiness, show_remarks
from planner.cli.screen import TODO_STATES, Screen, print_json
from planner.model.base import qualified
from planner.model.verdicts import Verdict
from planner.planfile.loader import shown_path
from planner.store.plan_run import PlanRun
from planner.text.display import cells, counted, listed, padded
from planner.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planner.engine.progress import StatusNode

_VERDICTS = {"passed": "good", "failed": "bad", "flaky": "bad", "blocked": "quiet", "not_run": "quiet"}
_MOST_CHECKS = 40
_NARROWEST_NAME = 12
_ALL_LEVELS = 1_000


@command(
    "\b\nExit status: 0 shown, 2 wrong usage, 4 a file cannot be read or does not fit.\n"
    "In a plan that was never verified, every todo is pending."
)
def status(
    plan: TodosArgument = None,
    todo: Annotated[
        str | None,
        typer.Argument(
            metavar="TODO", help="Show this todo in detail. Todos of a sub-plan are named parent/todo."
        ),
    ] = None,
    depth: Annotated[
        int | None, option("--depth N", "Show at most this number of levels below the top.", min=0)
    ] = None,
    outcomes: OutcomesOption = None,
    log: LogOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the tree of todos: the state of each, progress at every level, and what blocks what."""
    choice = choose_plan(plan)
    run = PlanRun.open(choice.path, outcomes, log, keep=True)
    tree = run.status()
    by_id = {each.id: each for each in tree.walk()}
    named = (*(choice.todo_ids or ()), *([] if todo is None else [todo]))
    nodes = [by_id[known_todo(run, each)] for each in named]
    levels = _ALL_LEVELS if depth is None else depth
    if not as_json:
        _show(run, tree, nodes, levels)
        return
    print_json(
        {
            "plan": {
                "todo_list_id": run.state.plan_id,
                "title": tree.title,
                "digest": run.tree.loaded.digest,
                "state": run.state.plan_state.value,
            },
            "run_id": None if run.found.document is None else run.found.document.run.run_id or None,
            "remarks": list(readiness(run).remarks),
            "progress": {"done": tree.done, "total": tree.total},
            "todos": [plain(each, levels) for each in nodes or tree.children if levels],
        },
        sort_keys=True,
    )


def plain(node: StatusNode, levels: int) -> dict[str, Any]:
    """Return a todo with its branches and children as a JSON object; empty members are left out.

    ``levels`` is the number of levels to include, counted from this todo.
    """
    document: dict[str, Any] = {
        "todo_id": node.id,
        "title": node.title,
        "state": node.state,
        "waits": node.waits,
        "blocked_by": list(node.blocked_by),
        "unproved": node.unproved or None,
        "progress": {"done": node.done, "total": node.total} if node.children else None,
    }
    if levels > 1:
        document["branches"] = [plain(each, levels - 1) for each in node.branches]
        document["todos"] = [plain(each, levels - 1) for each in node.children]
    return {key: value for key, value in document.items() if value not in (None, [])}


# -- the screen ----------------------------------------------------------------------------------------


def _show(run: PlanRun, tree: StatusNode, named: Sequence[StatusNode], levels: int) -> None:
    """Print the tree of the plan, or each of the ``named`` todos in detail."""
    screen = Screen()
    show_remarks(screen, run)
    if not named:
        show_tree(screen, tree, screen.one_line(shown_path(run.tree.loaded.path)), levels)
    for position, node in enumerate(named):
        if position:
            screen.line()
        _todo(screen, run, node)
        _tree(screen, (*node.branches, *node.children), levels)
    screen.show()


def show_tree(screen: Screen, tree: StatusNode, path: str, levels: int = _ALL_LEVELS) -> None:
    """Add a plan: its progress, the tree of its todos, and the number of todos by state."""
    title = screen.one_line(tree.title)
    screen.line(f"{screen.style(f'{title} ({tree.done}/{tree.total})', 'strong')}  {path}")
    _tree(screen, tree.children, levels)
    parts = [f"{count} {TODO_STATES[state][1]}" for state, count in tree.counts().items()]
    branches = sum(node.is_branch for node in tree.walk())
    screen.line(", ".join([*parts, *([counted(branches, "branch")] if branches else [])]))


def _tree(screen: Screen, nodes: Sequence[StatusNode], levels: int) -> None:
    """Add the tree of todos; names are padded so that the states are aligned, and cut if too long."""

    def collect(nodes: Sequence[StatusNode], stem: str, left: int) -> Iterator[tuple[StatusNode, str]]:
        for node in nodes if left else ():
            is_last = node is nodes[-1]
            yield node, stem + (screen.glyphs.last if is_last else screen.glyphs.tee)
            below = stem + ("   " if is_last else screen.glyphs.stem)
            yield from collect((*node.branches, *node.children), below, left - 1)

    rows = [(node, stem, _name(screen, node)) for node, stem in collect(nodes, "", levels)]
    # The states should fit on the screen, too.
    room = min(max((cells(stem + name) for _, stem, name in rows), default=0), screen.width * 2 // 3)
    for node, stem, name in rows:
        left = max(room - cells(stem), _NARROWEST_NAME)
        text = padded(screen.clip(name, left), left)
        why = node.waits or ("not verified" if node.unproved else _blocked(node))
        tail = screen.style(f"  {screen.one_line(why)}" if why else "", "quiet")
        screen.line(f"{screen.style(stem, 'quiet')}{text}  {_mark(screen, node)}{tail}")


def _name(screen: Screen, node: StatusNode, *, is_long: bool = False) -> str:
    """Return the id and title of a todo, with ``(3/3)`` for the progress of a parent.

    The id is the part after the last ``/`` unless ``is_long``.
    """
    own = node.id.rpartition("/")[2]
    name, title = node.id if is_long else own, screen.one_line(node.title)
    text = name if title == own else f"{name}  {title}"
    return f"{text} ({node.done}/{node.total})" if node.children else text


def _mark(screen: Screen, node: StatusNode) -> str:
    """Return the glyph and the word of the todo's state, styled."""
    field, word, style = TODO_STATES[node.state]
    return screen.style(f"{getattr(screen.glyphs, field)} {word}", style)


def _blocked(node: StatusNode) -> str:
    """Return ``by a, b``; empty for a todo that is not blocked."""
    return f"by {listed(node.blocked_by, 3)}" if node.blocked_by else ""


def _todo(screen: Screen, run: PlanRun, node: StatusNode) -> None:
    """Add one todo in detail: its facts, its checks, at most ``_MOST_CHECKS``, and its failure."""
    record = run.state.records[node.id]
    todo = record.todo
    screen.line(f"{screen.style(_name(screen, node, is_long=True), 'strong')}  {_mark(screen, node)}")
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
    # The newest verification may be one that the engine did not apply, for instance of a changed plan; or
    # one that did not select the todo, and says nothing of its failure.
    outcome = outcome_of(run, node.id)
    if outcome is None or all(check.verdict is Verdict.NOT_RUN for check in outcome.checks):
        outcome = record.outcome or outcome
    if outcome is None:
        return
    shown = outcome.checks[:_MOST_CHECKS]
    room = max((len(check.id) for check in shown), default=0)
    longest = max((len(check.verdict) for check in shown), default=0)
    for check in shown:
        word = screen.style(f"{check.verdict:<{longest}}", _VERDICTS.get(check.verdict, "warn"))
        lead = f"  {screen.style('check    ', 'quiet')}{word}  {screen.one_line(check.id):<{room}}  "
        # How many tests of a blocked todo ran before it was blocked depends on timing: not shown, so that
        # the output is the same for the same run.
        known = check.verdict is not Verdict.BLOCKED
        tests = f" ({counted(len(check.tests), 'test')})" if check.tests and known else ""
        reason = redact(check.reason) if check.reason and known else ""
        name = check.cmd or check.title or check.kind.value
        # The reason of an open question contains the question, which is its title.
        is_said = check.verdict is Verdict.NEEDS_HUMAN and not check.cmd and name in reason
        text = reason if is_said else f"{name}{tests}{reason and f': {reason}'}"
        screen.paragraph(text, indent=2 + 9 + longest + 2 + room + 2, first=lead)
    if len(outcome.checks) > _MOST_CHECKS:
        screen.line(f"and {len(outcome.checks) - _MOST_CHECKS} more checks", indent=2)
    for label, text in failure_facts(run, record, outcome).items():
        screen.labelled(label, text)
    # That of a branch's outcome would rerun the branch.
    failure = record.failure if outcome is record.outcome else outcome.failure_evidence
    if failure is not None and failure.rerun:
        screen.line(f"  {screen.style('rerun    ', 'quiet')}{screen.one_line(failure.rerun)}")
