"""The screens of ``planner history``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.cli.screen import Screen
from planner.cli.words import CATEGORIES, STATE_STYLES, STATES
from planner.edges.store.rows import PASSED, RESOLUTIONS
from planner.model.taxonomy import Category
from planner.text.display import cells, counted, listed, moment, padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.cli.history_store import Asked
    from planner.edges.store import CachedPlan
    from planner.edges.store.telling import Approval, Artifacts, Branch, Run, Seen

NOTHING_YET = "A store is filled by: planner step PLAN"
_STATES = {state.value: said for state, said in STATES.items()}
_STYLES = {state.value: style for state, style in STATE_STYLES.items()}
_DEEDS = {
    ("work", True): "worked",
    ("work", False): "worked, not done",
    ("verification", True): "verified, holds",
    ("verification", False): "verified, does not hold",
}
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_MOST_PLANS = 10
_MOST_RUNS = 10
_MOST_NAMED = 8


def show_runs(
    asked: Asked,
    runs: Sequence[Run],
    branches: Sequence[Branch],
    approvals: Sequence[Approval],
    mean: float | None,
) -> None:
    """The runs of a plan, the newest first, each with its branches."""
    screen = Screen()
    if not runs:
        screen.line(f"{screen.one_line(asked.shown)}: no run of it is in the store")
        screen.line(f"{screen.one_line(asked.store)}", indent=2)
        screen.line(NOTHING_YET, indent=2)
        screen.show()
        return
    parts = [counted(len(runs), "run"), counted(len(branches), "branch")]
    if mean is not None:
        parts.append(f"a repair took {duration(mean)} on average")
    stuck = sum(each.is_stuck for each in runs)
    if stuck:
        parts.append(f"{counted(stuck, 'run')} blocked")
    screen.paragraph(f"{asked.shown}: {', '.join(parts)}", indent=0)
    for run in runs[:_MOST_RUNS]:
        screen.line()
        _run(screen, run)
        _waiting(screen, run, [each for each in approvals if each.run_id == run.run_id])
        _branches(screen, [each for each in branches if each.run_id == run.run_id])
    if len(runs) > _MOST_RUNS:
        screen.line()
        screen.line(f"and {len(runs) - _MOST_RUNS} older; one of them with --run ID, all with --json")
    screen.show()


def show_seen(seen: Seen) -> None:
    """What is known of a failure, and what was done about it."""
    screen = Screen()
    kind = "" if seen.category is None else f"{seen.category}: {_in_words(seen.category)}"
    screen.line(f"{screen.style(screen.one_line(seen.signature), 'strong')}  {kind}")
    if seen.head:
        screen.clipped(f"  {screen.one_line(seen.head)}")
    if seen.times:
        where = (
            f"seen in {counted(seen.times, 'verification')} of {listed(map(screen.one_line, seen.todos))}"
        )
        screen.line(f"{where}, last {moment(seen.last or '')}", indent=2)
    screen.line()
    if not seen.repairs:
        screen.line("Nobody has repaired it yet, as far as the store knows.")
    else:
        rows = [
            (each.role, f"{each.fixed} of {each.tried}", each.strategy, moment(each.last))
            for each in seen.repairs
        ]
        _table(screen, ("ROLE", "FIXED", "STRATEGY", "LAST"), rows)
    if seen.branches:
        screen.line()
        _branches(screen, seen.branches)
    for each in seen.corrections:
        who = each["corrected_by"] or "somebody"
        kind = f" {each['right_category']}" if each["right_category"] else ""
        whose = f" of the {each['right_owner']}" if each["right_owner"] else ""
        was = f", and it was{kind}{whose}" if kind or whose else ""
        why = f": {each['because']}" if each["because"] else ""
        screen.line()
        screen.paragraph(
            f"{who} corrected it on {moment(each['at'])}: it is for the {each['role']}{was}{why}", indent=2
        )
    screen.show()


def show_unseen(signature: str, known: Sequence[str], has_store: bool) -> None:
    """That nothing is known of a failure."""
    screen = Screen()
    screen.line(f"The store has not seen a failure {screen.one_line(signature)}.")
    if known:
        screen.line(f"The latest that it has seen: {listed(map(screen.one_line, known))}", indent=2)
    elif has_store:
        screen.line("It has seen none at all.", indent=2)
    else:
        screen.line(NOTHING_YET, indent=2)
    screen.show()


def show_blocked(runs: Sequence[Run], waiting: Sequence[Approval], has_store: bool) -> None:
    """The runs that cannot go on, or not with all of their todos."""
    screen = Screen()
    if not runs:
        screen.line("No run is blocked." if has_store else "There is no store yet, so no run is blocked.")
        if not has_store:
            screen.line(NOTHING_YET, indent=2)
        screen.show()
        return
    screen.line(f"{counted(len(runs), 'run')} blocked, the longest first")
    for run in runs:
        screen.line()
        screen.line(screen.one_line(f"{run.plan_id} ({run.path})"))
        _run(screen, run)
        _waiting(screen, run, [each for each in waiting if each.run_id == run.run_id])
    screen.show()


def show_artifacts(asked: Asked, found: Sequence[Artifacts]) -> None:
    """The artifact log, in the order of the events of each run."""
    screen = Screen()
    if not found:
        screen.line(f"{screen.one_line(asked.shown)}: no turn of work is in the store")
        screen.line(NOTHING_YET, indent=2)
        screen.show()
        return
    for run_id in dict.fromkeys(each.run_id for each in found):
        screen.line(f"run {screen.style(screen.one_line(run_id), 'strong')}")
        for each in (one for one in found if one.run_id == run_id):
            _artifact(screen, each)
    screen.show()


def show_cached(goal: str, plans: Sequence[CachedPlan], here: str | None) -> None:
    """The plans that served a goal."""
    screen = Screen()
    if not plans:
        screen.line(f"No plan in the store was made for the goal '{screen.one_line(goal)}'.")
        screen.line("A plan's goal is its x-goal, else its workflow_name, else its todo_list_id.", indent=2)
        screen.show()
        return
    count = counted(len(plans), "plan")
    screen.line(f"{count} for the goal '{screen.one_line(plans[0].goal)}', the best first")
    rows = [
        (
            moment(each.at),
            "never run" if each.ended is None else _state(each.ended),
            "" if here is None else "here" if each.fingerprint == here else "elsewhere",
            screen.one_line(each.path),
            each.digest[: len("sha256:") + 12],
        )
        for each in plans[:_MOST_PLANS]
    ]
    _table(screen, ("WHEN", "ENDED", "WHERE", "FILE", "DIGEST"), rows)
    if len(plans) > _MOST_PLANS:
        screen.line(f"and {len(plans) - _MOST_PLANS} more; all with --json", indent=2)
    screen.line()
    screen.line("--plan prints the first of them")
    screen.show()


def duration(seconds: float) -> str:
    """A span of time in its two largest units: ``4 min 10 s``, ``2 d 3 h``."""
    rest = round(seconds)
    if rest == 0:
        return "0 s" if seconds <= 0 else "under 1 s"
    parts: list[str] = []
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts))


def _run(screen: Screen, run: Run) -> None:
    shown = screen.style(_state(run.state), _STYLES.get(run.state, "strong"))
    end = "" if run.closed is None else f" to {moment(run.closed)}"
    times = f"{moment(run.opened)}{end}, {counted(run.events, 'event')}"
    screen.line(f"run {screen.style(screen.one_line(run.run_id), 'strong')}  {shown}  {times}")
    if run.blocked:
        first = [screen.one_line(name) for name in run.blocked_todos[:_MOST_NAMED]]
        more = run.blocked - len(first)
        named = ", ".join(first) + (f" and {more} more" if more else "")
        since = f" since {moment(run.blocked_since)}" if run.blocked_since else ""
        screen.paragraph(f"blocked{since}: {named}", indent=2)


def _waiting(screen: Screen, run: Run, asked: Sequence[Approval]) -> None:
    for each in asked:
        if each.decision is None and run.closed is None:
            screen.paragraph(f"waits for a person since {moment(each.asked)}: {each.question}", indent=2)


def _branches(screen: Screen, branches: Sequence[Branch]) -> None:
    if not branches:
        return
    rows = [
        (
            screen.one_line(each.branch_id),
            screen.one_line(each.via or each.parent_id),
            each.role,
            str(each.attempts),
            _outcome(each),
            "" if each.duration_seconds is None else duration(each.duration_seconds),
        )
        for each in branches
    ]
    _table(screen, ("BRANCH", "OUT OF", "ROLE", "ATTEMPTS", "OUTCOME", "TOOK"), rows)


def _outcome(branch: Branch) -> str:
    if branch.outcome is None:
        return "open"
    came = RESOLUTIONS.get(branch.resolution or "", "")
    if branch.outcome == PASSED:
        return f"passed, {came}" if came else "passed"
    return f"{branch.outcome}, {came}" if came and came != "it failed" else branch.outcome


def _artifact(screen: Screen, each: Artifacts) -> None:
    verb = _DEEDS[each.source, each.success]
    turn = f"turn {each.turn}" if each.turn else "before any turn"
    if each.tokens is not None:
        verb = f"{verb}, {counted(each.tokens, 'token')}"
    screen.line(
        f"{moment(each.at)}  {screen.one_line(each.todo_id)}  {turn} ({each.role})  {verb}", indent=2
    )
    new = set(each.new_files)
    files = [f"{screen.one_line(name)}{' (new)' if name in new else ''}" for name in each.files]
    files += [f"{screen.one_line(name)} (new)" for name in each.new_files if name not in each.files]
    for name in files:
        screen.line(name, indent=6)
    if each.diff_hash:
        screen.line(f"diff {screen.one_line(each.diff_hash)}", indent=6)


def _state(word: str) -> str:
    return _STATES.get(word) or "in a state of another version"


def _in_words(category: str) -> str:
    try:
        return CATEGORIES[Category(category)]
    except ValueError:
        return "a category of another version"


def _table(screen: Screen, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they need to be; a column in which nothing stands is left out."""
    shown = [place for place in range(len(header)) if any(row[place] for row in rows)]
    table = [[row[place] for place in shown] for row in (header, *rows)]
    widths = [max(cells(row[place]) for row in table) for place in range(len(shown))]
    for number, row in enumerate(table):
        text = "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        screen.line(screen.style(text, "quiet") if number == 0 else text, indent=2)
