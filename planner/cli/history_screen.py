"""The screens of ``planner history``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.cli.screen import Screen
from planner.cli.words import CATEGORIES, STATE_STYLES, STATES
from planner.model.taxonomy import Category
from planner.store.tables import PASSED
from planner.text.display import cells, counted, listed, moment, padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.store.questions import Found

NOTHING_YET = "It is filled by: pytest --planverify PLAN, and by: planner step PLAN"
_STATES = {state.value: said for state, said in STATES.items()}
_STYLES = {state.value: style for state, style in STATE_STYLES.items()}
_DEEDS = {
    ("work", True): "worked",
    ("work", False): "worked, not done",
    ("verification", True): "verified, holds",
    ("verification", False): "verified, does not hold",
}
_RESOLUTIONS: dict[str, str] = {
    "parent_done": "its todo is done",
    "failure_gone": "then its todo failed otherwise",
    "parent_still_red": "its todo still failed",
    "attempts_used_up": "its attempts were used up",
    "lifetime_over": "its time was up",
    "given_up": "a person gave it up",
    "run_halted": "the run was halted",
}
"""What can come of a branch, in words."""
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_MOST_PLANS = 10
_MOST_RUNS = 10
_MOST_NAMED = 8


def show_runs(
    shown: str,
    runs: Sequence[Found],
    branches: Sequence[Sequence[Found]],
    asked: Sequence[Sequence[Found]],
    verifications: Sequence[Found],
    failures: Sequence[Found],
    mean: float | None,
) -> None:
    """Show the runs of a plan, the newest first, its verifications, and its failures by category."""
    screen = Screen()
    if not runs and not verifications:
        screen.line(f"{screen.one_line(shown)}: no run of it is known")
        screen.line(NOTHING_YET, indent=2)
        screen.show()
        return
    parts = [counted(len(verifications), "verification")] if verifications else []
    if runs:
        parts += [counted(len(runs), "run"), counted(sum(map(len, branches)), "branch")]
    if mean is not None:
        parts.append(f"a repair took {duration(mean)} on average")
    stuck = sum(each["blocked_since"] is not None for each in runs)
    parts += [f"{counted(stuck, 'run')} blocked"] if stuck else []
    screen.paragraph(f"{shown}: {', '.join(parts)}", indent=0)
    for run, waiting, those in list(zip(runs, asked, branches, strict=True))[:_MOST_RUNS]:
        screen.line()
        _run(screen, run, waiting)
        _branches(screen, those)
    if len(runs) > _MOST_RUNS:
        screen.line()
        screen.line(f"and {len(runs) - _MOST_RUNS} older; one of them with --run ID, all with --json")
    if verifications:
        screen.line()
        rows = [
            (
                screen.one_line(each["run_id"]),
                moment(each["started"]),
                f"{each['done']} of {each['todos']}",
                str(each["exit_status"]),
            )
            for each in verifications[:_MOST_RUNS]
        ]
        _table(screen, ("VERIFICATION", "WHEN", "DONE", "EXIT"), rows)
        if len(verifications) > _MOST_RUNS:
            screen.line(f"and {len(verifications) - _MOST_RUNS} older, all with --json", indent=2)
    if failures:
        screen.line()
        rows = [
            (
                each["category"],
                each["role"],
                str(each["failures"]),
                listed(map(screen.one_line, each["todos"]), 4),
                moment(each["last"]),
            )
            for each in failures
        ]
        _table(screen, ("FAILED", "ROLE", "FAILURES", "TODOS", "LAST"), rows)
    screen.show()


def show_failure(found: Found) -> None:
    """Show what is known of a failure, and what was done about it."""
    screen = Screen()
    category = found["category"]
    screen.line(
        f"{screen.style(screen.one_line(found['signature']), 'strong')}  {category}: {_in_words(category)}"
    )
    if found["head"]:
        screen.clipped(f"  {screen.one_line(found['head'])}")
    if found["times"]:
        where = listed(map(screen.one_line, found["todos"]))
        times = counted(found["times"], "verification")
        screen.line(f"seen in {times} of {where}, last {moment(found['last'])}", indent=2)
    screen.line()
    if not found["repairs"]:
        screen.line("Nobody has repaired it yet, as far as the logs tell.")
    else:
        rows = [
            (each["role"], f"{each['fixed']} of {each['tried']}", each["strategy"], moment(each["last"]))
            for each in found["repairs"]
        ]
        _table(screen, ("ROLE", "FIXED", "STRATEGY", "LAST"), rows)
    if found["branches"]:
        screen.line()
        _branches(screen, found["branches"])
    for each in found["corrections"]:
        kind = f" {each['right_category']}" if each["right_category"] else ""
        whose = f" of the {each['right_owner']}" if each["right_owner"] else ""
        was = f", and it was{kind}{whose}" if kind or whose else ""
        why = f": {each['because']}" if each["because"] else ""
        said = f"{each['by'] or 'somebody'} corrected it on {moment(each['at'])}"
        screen.line()
        screen.paragraph(f"{said}: it is for the {each['role']}{was}{why}", indent=2)
    screen.show()


def show_unknown(signature: str, known: Sequence[str]) -> None:
    """Show that nothing is known of a failure."""
    screen = Screen()
    screen.line(f"No run has seen a failure {screen.one_line(signature)}.")
    if known:
        screen.line(f"The latest that were seen: {listed(map(screen.one_line, known))}", indent=2)
    else:
        screen.line(f"None was seen at all. {NOTHING_YET}", indent=2)
    screen.show()


def show_blocked(runs: Sequence[Found], waiting: Sequence[Sequence[Found]]) -> None:
    """Show the runs that cannot go on, or not with all of their todos."""
    screen = Screen()
    screen.line(f"{counted(len(runs), 'run')} blocked, the longest first" if runs else "No run is blocked.")
    for run, asked in zip(runs, waiting, strict=True):
        screen.line()
        screen.line(screen.one_line(f"{run['plan_id']} ({run['path']})"))
        _run(screen, run, asked)
    screen.show()


def show_work(shown: str, runs: Sequence[Found], found: Sequence[Sequence[Found]]) -> None:
    """Show the artifact log, in the order of the events of each run."""
    screen = Screen()
    if not any(found):
        screen.line(f"{screen.one_line(shown)}: no turn of work is known")
        screen.line("It is filled by: planner step PLAN", indent=2)
    for run, those in zip(runs, found, strict=True):
        if those:
            screen.line(f"run {screen.style(screen.one_line(run['run_id']), 'strong')}")
        for each in those:
            _work(screen, each)
    screen.show()


def show_plans(goal: str, plans: Sequence[Found], here: str | None) -> None:
    """Show the plans that served a goal."""
    screen = Screen()
    if not plans:
        screen.line(f"No plan that is known was made for the goal '{screen.one_line(goal)}'.")
        screen.line("A plan's goal is its x-goal, else its workflow_name, else its todo_list_id.", indent=2)
        screen.show()
        return
    count = counted(len(plans), "plan")
    screen.line(f"{count} for the goal '{screen.one_line(plans[0]['goal'])}', the best first")
    rows = [
        (
            moment(each["at"]),
            _state(each["ended"]),
            "" if here is None else "here" if each["fingerprint"] == here else "elsewhere",
            screen.one_line(each["path"]),
            each["digest"][: len("sha256:") + 12],
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
    """Return a span of time in its two largest units: ``4 min 10 s``, ``2 d 3 h``."""
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


def _run(screen: Screen, run: Found, asked: Sequence[Found]) -> None:
    shown = screen.style(_state(run["state"]), _STYLES.get(run["state"], "strong"))
    end = "" if run["closed"] is None else f" to {moment(run['closed'])}"
    times = f"{moment(run['opened'])}{end}, {counted(run['events'], 'event')}"
    screen.line(f"run {screen.style(screen.one_line(run['run_id']), 'strong')}  {shown}  {times}")
    if run["blocked"]:
        named = listed(map(screen.one_line, run["blocked"]), _MOST_NAMED)
        since = f" since {moment(run['blocked_since'])}" if run["blocked_since"] else ""
        screen.paragraph(f"blocked{since}: {named}", indent=2)
    for each in asked:
        if each["decision"] is None and run["closed"] is None:
            said = f"waits for a person since {moment(each['asked'])}: {each['question']}"
            screen.paragraph(said, indent=2)


def _branches(screen: Screen, branches: Sequence[Found]) -> None:
    rows = [
        (
            screen.one_line(each["branch_id"]),
            screen.one_line(each["via"] or each["parent_id"]),
            each["role"],
            str(each["attempts"]),
            _outcome(each),
            "" if each["duration_seconds"] is None else duration(each["duration_seconds"]),
        )
        for each in branches
    ]
    if rows:
        _table(screen, ("BRANCH", "OUT OF", "ROLE", "ATTEMPTS", "OUTCOME", "TOOK"), rows)


def _outcome(branch: Found) -> str:
    if branch["outcome"] is None:
        return "open"
    came = _RESOLUTIONS.get(branch["resolution"] or "", "")
    said = "passed" if branch["outcome"] == PASSED else branch["outcome"]
    return f"{said}, {came}" if came else said


def _work(screen: Screen, each: Found) -> None:
    verb = _DEEDS[each["kind"], each["success"]]
    turn = f"turn {each['turn']}" if each["turn"] else "before any turn"
    if each["tokens"] is not None:
        verb = f"{verb}, {counted(each['tokens'], 'token')}"
    who = "" if each["role"] is None else f" ({each['role']})"
    screen.line(f"{moment(each['at'])}  {screen.one_line(each['todo_id'])}  {turn}{who}  {verb}", indent=2)
    new = each["new_files"]
    for name in dict.fromkeys([*each["files"], *new]):
        screen.line(f"{screen.one_line(name)}{' (new)' if name in new else ''}", indent=6)
    if each["diff_hash"]:
        screen.line(f"diff {screen.one_line(each['diff_hash'])}", indent=6)


def _state(word: str) -> str:
    return _STATES.get(word) or "in a state of another version"


def _in_words(category: str) -> str:
    try:
        return CATEGORIES[Category(category)]
    except ValueError:
        return "a category of another version"


def _table(screen: Screen, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Show columns as wide as they need to be; one in which nothing stands is left out."""
    shown = [place for place in range(len(header)) if any(row[place] for row in rows)]
    table = [[row[place] for place in shown] for row in (header, *rows)]
    widths = [max(cells(row[place]) for row in table) for place in range(len(shown))]
    for number, row in enumerate(table):
        text = "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        screen.line(screen.style(text, "quiet") if number == 0 else text, indent=2)
