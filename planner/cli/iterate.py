"""``planner gaps`` and ``planner iterate``: collect what is missing, and plan one iteration to fix one gap.

Gaps come from outcomes, ruff, pyright, an inbox folder and a roadmap; see
:mod:`planner.authoring.iterations`. The most critical one becomes a plan file; the next call first records
how that iteration ended.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from planner.authoring.first_plan import root_for
from planner.authoring.iterations import (
    INBOX,
    ROADMAP,
    TOOL_CRITERIA,
    GapReport,
    IterationLog,
    IterationOutcome,
    Planner,
    ProjectState,
    gaps_of_inbox,
    gaps_of_outcomes,
    gaps_of_pyright,
    gaps_of_roadmap,
    gaps_of_ruff,
    plan_of_iteration,
    read_gap_report,
)
from planner.cli.app import command
from planner.cli.arguments import JsonOption, option, usual_plan
from planner.cli.exits import Status, UsageMistake, complain, program
from planner.cli.screen import Screen, print_json
from planner.planfile.file_writer import write_file
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.left_files import remember_written
from planner.planfile.project_files import RootedFiles, walk
from planner.planfile.tree import load_flat
from planner.planfile.writer import dump_plan
from planner.text.display import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.authoring.iterations import Gap

FOLDER = Path("iterations")
MOST_SHOWN = 12

RuffOption = Annotated[Path | None, option("--ruff FILE", "The output of ruff check --output-format json.")]
PyrightOption = Annotated[Path | None, option("--pyright FILE", "The output of pyright --outputjson.")]
InboxOption = Annotated[
    Path | None,
    option("--inbox DIR", "A folder with one Markdown file per request. Default: inbox, if it exists."),
]
RoadmapOption = Annotated[
    Path | None, option("--roadmap FILE.md", "A list with check boxes. Default: ROADMAP.md, if it exists.")
]
OutcomesOfOption = Annotated[
    Path | None, option("--plan PLAN", "The plan whose last outcomes are used. Default: the usual plan.")
]


@command("Exit status: 0 no gaps, 1 gaps, 2 wrong usage, 4 a file cannot be read.")
def gaps(
    ruff: RuffOption = None,
    pyright: PyrightOption = None,
    inbox: InboxOption = None,
    roadmap: RoadmapOption = None,
    plan: OutcomesOfOption = None,
    output: Annotated[
        Path | None, option("-o, --output FILE", "Write the report to this file, as JSON.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """List failures, requests and open items of the roadmap, the most critical first.

    Root causes of failed todos come first, then findings of ruff and errors of pyright, the inbox, and the
    roadmap. Nothing is executed.
    """
    report = _collect_gaps(ruff, pyright, inbox, roadmap, plan)
    if output is not None:
        write_file(output, report.model_dump_json(indent=2, exclude_defaults=True) + "\n", mode=None)
        # Otherwise the next run would blame a todo for the new file.
        remember_written(output)
        complain(f"wrote {output}: {counted(len(report.gaps), 'gap')}")
    elif as_json:
        print_json(report.model_dump(mode="json", exclude_defaults=True))
    else:
        screen = Screen()
        for gap in report.gaps[:MOST_SHOWN]:
            where = f"  ({', '.join(gap.evidence[:2])})" if gap.evidence else ""
            screen.clipped(screen.one_line(f"{gap.category:<8} {gap.description}{where}"))
        if len(report.gaps) > MOST_SHOWN:
            screen.line(f"and {len(report.gaps) - MOST_SHOWN} more; --json lists all")
        given = {"ruff": ruff, "pyright": pyright, "inbox": inbox, "roadmap": roadmap, "plan": plan}
        sources = "".join(f" --{name} {shlex.quote(str(path))}" for name, path in given.items() if path)
        screen.line(f"next: {program()} iterate{sources}" if report.gaps else "there are no gaps")
        screen.show()
    return Status.FOUND if report.gaps else Status.OK


@command(
    "Exit status: 0 an iteration was planned, 1 there is nothing to plan, or the open iteration was not "
    "verified, 2 wrong usage, 4 a file that cannot be read."
)
def iterate(
    gaps: Annotated[
        Path | None, option("--gaps FILE", "A gap report. Default: the gaps that planner gaps finds.")
    ] = None,
    ruff: RuffOption = None,
    pyright: PyrightOption = None,
    inbox: InboxOption = None,
    roadmap: RoadmapOption = None,
    plan: OutcomesOfOption = None,
    output: Annotated[
        Path | None, option("-o, --output FILE", "The file to write. Default: iterations/ID.yaml.")
    ] = None,
    outcome: Annotated[
        str | None,
        option(
            "--rollback NOTE", "Discard the open iteration, for this reason; its outcomes do not count."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Record the outcome of the last iteration, and plan the next: one gap, one plan file.

    A gap that failed three times in a row comes after all others. The plan is verified like any other.
    """
    root = Path.cwd()
    log = IterationLog(root)
    if outcome is not None and log.open is None:
        raise UsageMistake("--rollback: no iteration is open; remove the option")
    if log.open is not None:
        # An iteration ends by its outcomes, or because a person discards it: nobody's word is a success.
        judged = (IterationOutcome.ROLLBACK, outcome) if outcome is not None else log.judged()
        if judged is None:
            complain(
                f"{log.open.plan.iteration_id} was not verified in its current state; verify it: "
                f"planverify verify {log.open.file}, or discard it: {program()} iterate --rollback WHY"
            )
            return Status.FOUND
        ended = log.end(*judged)
        complain(
            f"{ended.iteration_id} ended: {ended.outcome.value}{f' ({ended.note})' if ended.note else ''}"
        )
    # After the end of the last iteration was recorded: gaps that failed several times come later.
    report = _collect_gaps(ruff, pyright, inbox, roadmap, plan) if gaps is None else read_gap_report(gaps)
    found = Planner(ProjectFolder(root)).plan(report, log.records, ProjectState(files=tuple(walk(root))))
    if found is None:
        gap = report.most_critical
        only_protected = "would change only protected files; do it yourself, or remove it from the list"
        complain("there are no gaps" if gap is None else f"'{gap.description}' {only_protected}")
        return Status.FOUND
    path = output or FOLDER / f"{found.iteration_id}.yaml"
    # A criterion whose tool is missing could never pass.
    tools = [each for each in TOOL_CRITERIA.values() if shutil.which(each.split()[0])]
    made = plan_of_iteration(found, tools=tools)
    if path.parent != Path():
        # The paths of the plan are relative to the project, but the file stands in a folder of it.
        made = made.model_copy(update={"root": root_for(root / path, root)})
    text = f"# Made by planner iterate. Verify it: planverify verify {path}\n"
    write_file(path, text + dump_plan(made, format="yaml"), mode=None)
    log.begin(found, str(path))
    if as_json:
        print_json(found.model_dump(mode="json"))
        return Status.OK
    screen = Screen()
    screen.line(f"{found.iteration_id}: {found.gap.description} (risk {found.estimated_risk})")
    for action in found.actions:
        screen.line(f"  {action.action_type} {', '.join(action.target_files) or 'files to be determined'}")
    screen.line(f"wrote {path}")
    screen.line(f"run it:        planverify run {path} --agent NAME, or by hand")
    screen.line(f"verify it:     planverify verify {path}")
    screen.line(f"then:          {program()} iterate")
    screen.show()
    return Status.OK


class ProjectFolder(RootedFiles):
    """The files of a project, as :class:`planner.authoring.iterations.Planner` reads them."""

    def read_text(self, path: str) -> str | None:
        """Return the beginning of a file as text; ``None`` if it is missing or outside of the folder."""
        file = self.read(path)
        return None if file is None else file.text


def _collect_gaps(
    ruff: Path | None, pyright: Path | None, inbox: Path | None, roadmap: Path | None, plan: Path | None
) -> GapReport:
    """Return the report of all gaps; an inbox and a roadmap at their usual places are used unasked.

    Raises ``UsageMistake`` if there is nothing to read, the named inbox does not exist, or the named plan
    was not verified.
    """
    root = Path.cwd()
    if inbox is not None and not inbox.is_dir():
        raise UsageMistake(f"--inbox {inbox}: the folder does not exist; name another")
    inbox = inbox or (root / INBOX if (root / INBOX).is_dir() else None)
    roadmap = roadmap or (root / ROADMAP if (root / ROADMAP).is_file() else None)

    # Without sources, "there are no gaps" would be misleading.
    if not any((inbox, roadmap, ruff, pyright, plan or usual_plan())):
        raise UsageMistake(
            f"there is nothing to read gaps from: no plan, no {INBOX}/ and no {ROADMAP}; name one of "
            f"--plan, --ruff, --pyright, --inbox and --roadmap, or make a plan: {program()} init"
        )

    def every() -> Iterator[Gap]:
        yield from _gaps_of_last_run(plan)
        yield from () if ruff is None else gaps_of_ruff(ruff)
        yield from () if pyright is None else gaps_of_pyright(pyright)
        yield from () if inbox is None else gaps_of_inbox(inbox, root)
        yield from () if roadmap is None else gaps_of_roadmap(roadmap, root)

    return GapReport.model_validate({"gaps": tuple(every())})


def _gaps_of_last_run(plan: Path | None) -> Iterator[Gap]:
    """Yield the gaps of a plan's last run; say so where the usual plan has none.

    Raises ``UsageMistake`` if a plan that was named has no run.
    """
    path = plan or usual_plan()
    if path is None:
        return
    flat = load_flat(path)
    found = find_outcomes(flat.loaded)
    if found.document is not None:
        yield from gaps_of_outcomes(found.document)
    elif plan is not None:
        raise UsageMistake(f"--plan {plan}: the plan was not verified; run first: {found.verify}")
    else:
        complain(f"{path} was not verified, so its failures are unknown; run: {found.verify}")
