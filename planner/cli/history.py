"""``planner history``: earlier runs with their repairs, and corrections of wrong diagnoses.

Everything is queried from an index (:mod:`planner.store.index`) that is built from the logs and outcome
files below ``.planverify``, and can be rebuilt from them at any time; ``--store`` names another database.
Files that the index could not read are reported on standard error, and the exit status is then 4.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.app import DefaultGroup, command_app
from planner.cli.arguments import JsonOption, PlanArgument, nearest, option, plan_or_usual, usual_plan
from planner.cli.exits import Status, UsageMistake, complain, say
from planner.cli.screen import Screen, print_json
from planner.errors import PlannerError
from planner.model.past import Correction
from planner.model.taxonomy import Category, Role
from planner.planfile.discovery import PLAN_ENDINGS
from planner.planfile.loader import load_plan
from planner.planfile.project_facts import repository_fingerprint
from planner.store.corrections import append_correction
from planner.store.index import Index, mean_resolution, open_index
from planner.text.display import counted, listed, moment
from planner.text.sanitizing import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.planfile.loader import LoadedPlan
    from planner.store.index import Found

StoreOption = Annotated[
    str | None,
    option(
        "--store URL", "The database to read, an SQLite file or a URL. Default: the index of the project."
    ),
]
EPILOG = (
    "Exit status: 0 shown, 2 wrong usage, 4 a file or the database cannot be used; the results of the "
    "others are shown anyway."
)

_RESOLUTIONS = {
    "parent_done": "its todo is done",
    "failure_gone": "its todo then failed differently",
    "parent_still_red": "its todo still failed",
}
"""The words for what the verification of a todo after its branch decided."""
_MOST = 10


app = command_app(cls=DefaultGroup)


@app.callback()
def history() -> None:
    """Show earlier runs; `planner history PLAN` shows those of a plan.

    It is read from the logs and outcome files below .planverify, by way of an index that can be deleted.
    """


@app.command(epilog=EPILOG)
def show(
    plan: PlanArgument = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    rebuild: Annotated[
        bool, option("--rebuild", "Rebuild the index of the project from its files.")
    ] = False,
    imports: Annotated[
        bool, option("--import", "Update the database of --store from this project.")
    ] = False,
) -> int:
    """Show the runs of a plan with their branches, and what is blocked."""
    if (imports and store is None) or (rebuild and store is not None):
        raise UsageMistake("--import fills the database of --store URL, --rebuild the project's own index")
    root, plan_id, shown = project_of(plan)
    with open_index_of(root, store, rebuild=rebuild, imports=imports) as index:
        runs, verified = index.runs(plan_id), index.verifications(plan_id)
    if shown == plan_id:
        require_rows(plan_id, runs, verified)
    branches = [each for run in runs for each in run["branches"]]
    mean = mean_resolution(branches)
    stuck = [each["run_id"] for each in runs if each["blocked_since"]]
    if as_json:
        known = {"plan": plan_id, "average_resolution_seconds": mean, "blocked_runs": stuck}
        print_json({**known, "runs": runs, "verifications": verified})
        return status_of(index)
    screen = Screen()
    parts = [counted(len(verified), "verification")] if verified else []
    if runs:
        parts += [counted(len(runs), "run"), counted(len(branches), "branch")]
    parts += [] if mean is None else [f"a repair took {_duration(mean)} on average"]
    parts += [f"{counted(len(stuck), 'run')} blocked"] if stuck else []
    if not parts:
        verify = f"pytest --planverify {shlex.quote(str(plan_or_usual(plan)))}"
        parts = [f"no run is known; record one: {verify}"]
    screen.paragraph(f"{shown}: {', '.join(parts)}")
    for run in runs[:_MOST]:
        _show_run(screen, run)
    if len(runs) > _MOST:
        screen.line(f"and {len(runs) - _MOST} older; --json has all of them")
    screen.table(
        ("VERIFICATION", "WHEN", "DONE", "EXIT"),
        [
            (at["run_id"], moment(at["started"]), f"{at['done']} of {at['todos']}", at["exit_status"])
            for at in verified[:_MOST]
        ],
    )
    screen.show()
    return status_of(index)


@app.command(epilog="Exit status: 0 recorded, 2 wrong usage, 4 the correction cannot be written.")
def correct(
    signature: Annotated[
        str, typer.Argument(metavar="SIGNATURE", help="The signature of a failure, or the start of it.")
    ],
    category: Annotated[
        Category | None, option("--category CATEGORY", "The right category.", case_sensitive=False)
    ] = None,
    role: Annotated[
        Role | None,
        option(
            "--role",
            "The role that should have acted. Default: the default role of the category.",
            case_sensitive=False,
        ),
    ] = None,
    because: Annotated[str | None, option("--because TEXT", "The reason.")] = None,
    by: Annotated[str | None, option("--by NAME", "The name of the person.")] = None,
) -> None:
    """Record the right category or role of a failure; later runs route such failures by it."""
    if role is None and category is None:
        raise UsageMistake(
            "a correction needs the right category (--category) or the role that should have acted (--role)"
        )
    root = project_root()
    with open_index_of(root) as index:
        rows = index.failures()
    known = list(dict.fromkeys(row["signature"] for row in rows))
    meant = [each for each in known if each == signature or (signature and each.startswith(signature))]
    if signature not in meant and len(meant) != 1:
        problem = "several failures begin so" if meant else "no run has seen that failure"
        raise UsageMistake(f"{signature}: {problem}; {nearest(signature, known, 'the latest are')}")
    seen = [row for row in rows if row["signature"] == (signature if signature in meant else meant[0])]
    newest, diagnosed = seen[0], Category(seen[0]["category"])
    usual = category.facts.default_role if category else newest["role"] or diagnosed.facts.default_role
    loaded = usual_loaded()
    # Outcome files, unlike logs, have no fingerprint of the repository.
    here = "" if loaded is None else repository_fingerprint(loaded.root, loaded.plan)
    correction = Correction(
        at=datetime.now(UTC),
        fingerprint=next((row["fingerprint"] for row in seen if row["fingerprint"]), here),
        signature=newest["signature"],
        category=diagnosed,
        role=role or Role(usual),
        right_category=category,
        by=by,
        because=because,
    )
    append_correction(root, correction)
    really = f" and was {category}" if category else ""
    say(f"remembered: {correction.signature} ({diagnosed}) is for the {correction.role}{really}")


def _show_run(screen: Screen, run: Found) -> None:
    """Add a run: its state and times, blocked todos, unanswered questions, and branches."""
    end = "" if run["closed"] is None else f" to {moment(run['closed'])}"
    times = f"{moment(run['opened'])}{end}, {counted(run['events'], 'event')}"
    screen.line()
    name = screen.style(screen.one_line(run["run_id"]), "strong")
    screen.line(f"run {name}  {screen.plan_state(run['state'])}  {times}")
    if run["blocked"]:
        since = f" since {moment(run['blocked_since'])}" if run["blocked_since"] else ""
        screen.paragraph(f"blocked{since}: {listed(run['blocked'])}", indent=2)
    for each in run["questions"]:
        if each["decision"] is None and run["closed"] is None:
            text = f"waiting for a person since {moment(each['asked'])}: {each['question']}"
            screen.paragraph(text, indent=2)
    rows: list[tuple[Any, ...]] = []
    for each in run["branches"]:
        resolution = _RESOLUTIONS.get(each["resolution"] or "", "")
        outcome = ", ".join(filter(None, (each["outcome"] or "open", resolution)))
        took = "" if each["duration_seconds"] is None else _duration(each["duration_seconds"])
        out_of = each["via"] or each["parent_id"]
        rows.append((each["branch_id"], out_of, each["role"], each["attempts"], outcome, took))
    screen.table(("BRANCH", "OUT OF", "ROLE", "ATTEMPTS", "OUTCOME", "TOOK"), rows, apart=False)


def _duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds: ``0:02:00``."""
    return str(timedelta(seconds=round(seconds)))


# -- the subject of a query ----------------------------------------------------------------------------


def project_of(plan: Path | None) -> tuple[Path, str, str]:
    """Return the root of a plan, its id, and its name for the screen.

    The plan is given by its path, or by its id where no such file exists.
    """
    # The file of an earlier plan may be gone, while its runs are still known by its id.
    if plan is not None and not plan.exists() and not plan.name.endswith(PLAN_ENDINGS):
        plan_id = without_surrogates(str(plan))
        return project_root(), plan_id, plan_id
    path = plan_or_usual(plan)
    loaded = load_plan(path)
    return loaded.root, loaded.plan.todo_list_id, f"{loaded.plan.todo_list_id} ({path})"


def require_rows(plan_id: str, *rows: Sequence[Found]) -> None:
    """Raise ``UsageMistake`` if there are no rows of a plan that was named by its id, maybe misspelt."""
    if not any(rows):
        raise UsageMistake(f"{plan_id}: there is no such file, and no recorded run of a plan with that id")


def project_root() -> Path:
    """Return the usual plan's root, else the current folder."""
    loaded = usual_loaded()
    return Path() if loaded is None else loaded.root


def usual_loaded() -> LoadedPlan | None:
    """Return the usual plan of the current folder; ``None`` if there is none or it cannot be loaded."""
    path = usual_plan()
    try:
        return None if path is None else load_plan(path)
    except (PlannerError, OSError):
        return None


def open_index_of(
    root: Path, store: str | None = None, *, rebuild: bool = False, imports: bool = False
) -> Index:
    """Call :func:`open_index`; report on standard error what it cannot read."""
    index = open_index(root, store, rebuild=rebuild, imports=imports)
    for remark in index.remarks:
        complain(remark)
    return index


def status_of(index: Index) -> Status:
    """Return the exit status of a command that has shown what the index could read."""
    return Status.UNREADABLE if index.remarks else Status.OK
