"""``planner gaps`` and ``planner iterate``: collect what is missing, and plan one iteration to fix one gap.

Gaps come from outcomes, an inbox folder and a roadmap; see
:mod:`planner.authoring.iterations`. The most critical one becomes a plan file; the next call first records
how that iteration ended.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from planner.authoring.first_plan import in_format_of, plan_text, root_for
from planner.authoring.iterations import (
    MOST_TEXT,
    TOOL_CRITERIA,
    GapReport,
    IterationOutcome,
    IterationRecord,
    Planner,
    ProjectState,
    exhaustion,
    gaps_of_inbox,
    gaps_of_outcomes,
    gaps_of_roadmap,
    is_closed,
    judge,
    plan_of_iteration,
    read_gap_report,
    read_log,
    shown_action,
    write_log,
)
from planner.authoring.repository import read_repository
from planner.cli.app import command
from planner.cli.arguments import JsonOption, option, usual_plan
from planner.cli.exits import Status, UsageMistake, complain, program, say
from planner.cli.screen import Screen, print_json
from planner.planfile.file_writer import STANDARD_OUTPUT, write_file
from planner.planfile.latest_outcomes import find_outcomes
from planner.planfile.left_files import remember_written
from planner.planfile.project_files import RootedFiles, unusual_fault, walk
from planner.planfile.tree import load_flat
from planner.text.display import listed
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path("iterations")
INBOX = Path("inbox")
ROADMAP = Path("ROADMAP.md")


@command("Exit status: 0 no gaps, 1 gaps, 2 wrong usage, 4 a file cannot be read.")
def gaps(
    plan: Annotated[
        Path | None,
        option("--plan PLAN", "The plan whose last outcomes are used. Default: the usual plan."),
    ] = None,
    output: Annotated[
        Path | None, option("-o, --output FILE", "Write the report to this file, as JSON.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """List failures, requests and open items of the roadmap, the most critical first.

    Root causes of failed todos come first, then the Markdown files in inbox/, and the open boxes of
    ROADMAP.md. Nothing is executed.
    """
    report = _collect_gaps(read_log(Path.cwd()), plan)
    status = Status.FOUND if report.gaps else Status.OK
    if as_json or output is not None:
        path = output or STANDARD_OUTPUT
        write_file(path, report.model_dump_json(indent=2, exclude_defaults=True) + "\n", mode=None)
        # Otherwise the next run would blame a todo for the new file.
        remember_written(path)
        if output is not None:
            complain(f"wrote {output}; plan the first gap: {program()} iterate --gaps {output}")
        return status
    screen = Screen()
    for gap in report.gaps:
        where = f"  ({', '.join(gap.evidence[:2])})" if gap.evidence else ""
        screen.clipped(f"{gap.category:<8} ", f"{gap.description}{where}")
    then = f"{program()} iterate"
    if plan is not None:
        then = f"write them with -o gaps.json, then: {then} --gaps gaps.json"
    screen.line(f"next: {then}" if report.gaps else "there are no gaps")
    screen.show()
    return status


@command(
    "Exit status: 0 an iteration was planned, 1 there is nothing to plan, or the open iteration was not "
    "verified, 2 wrong usage, 4 a file that cannot be read."
)
def iterate(
    gaps: Annotated[
        Path | None,
        option("--gaps FILE", "A gap report. Default: what planner gaps finds without options."),
    ] = None,
    output: Annotated[
        Path | None, option("-o, --output FILE", "The file to write. Default: iterations/ID.yaml.")
    ] = None,
    rollback: Annotated[
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
    log = read_log(root)
    # Plans of earlier iterations may be replaced, so that each can have the same name.
    if output and os.path.lexists(output) and str(output) not in [each.file for each in log]:
        raise UsageMistake(f"{output} exists already, and is no iteration's; name another file with -o")
    last = log[-1] if log and log[-1].outcome is None else None
    if rollback is not None and last is None:
        raise UsageMistake("--rollback: no iteration is open; remove the option")
    if last is not None:
        # An iteration ends by its outcomes, or because a person discards it: nobody's word is a success.
        judged = judge(root, last) if rollback is None else (IterationOutcome.ROLLBACK, rollback)
        if judged is None:
            complain(
                f"{last.iteration_id} was not verified in its current state; verify it: "
                f"planverify verify {last.file}, or discard it: {program()} iterate --rollback WHY"
            )
            return Status.FOUND
        outcome, note = judged
        log[-1] = last.model_copy(update={"outcome": outcome, "note": note})
        write_log(root, log)
        complain(f"{last.iteration_id} ended: {outcome.value}{f' ({note})' if note else ''}")
    # After the end of the last iteration was recorded: gaps that failed several times come later.
    report = _collect_gaps(log) if gaps is None else read_gap_report(gaps)
    # A plan cannot name other files, such as those with control characters.
    state = ProjectState(files=tuple(each for each in walk(root) if unusual_fault(each, "") is None))
    found = Planner(ProjectFolder(root)).plan(report, log, state)
    if found is None:
        gap = report.most_critical
        protected = "would change protected files; do it yourself, or remove it from the list"
        complain("there are no gaps" if gap is None else f"'{gap.description}' {protected}")
        return Status.FOUND
    path = output or FOLDER / f"{found.iteration_id}.yaml"
    # A criterion whose tool is missing could never pass; one that the project does not use is no demand.
    used = {each.tool for each in read_repository(root).checks if each.is_installed}
    tools = [each for each in TOOL_CRITERIA.values() if each.split()[0] in used]
    made = plan_of_iteration(found, tools=tools, files=state.files, root=root_for(root / path, root))
    text = plan_text(made, [f"Made by {program()} iterate. Verify it: planverify verify {path}"])
    write_file(path, in_format_of(path, text), mode=None)
    record = IterationRecord(
        iteration_id=found.iteration_id,
        gap_category=found.gap.category,
        gap_description=found.gap.description,
        file=str(path),
    )
    write_log(root, [*log, record])
    if as_json:
        print_json(found.model_dump(mode="json"))
        return Status.OK
    if warning := exhaustion(found.gap, log):
        complain(warning)
    elif report.most_critical not in (None, found.gap):
        complain(f"'{report.most_critical.description}' has failed too often; it comes later")
    description = one_line(found.gap.description, limit=MOST_TEXT)
    say(f"{found.iteration_id}: {description} (risk {found.estimated_risk})")
    for action in found.actions:
        say(f"  {shown_action(action)}")
    say(f"wrote {path}")
    say(f"run it:        planverify run {path} --agent NAME, or by hand")
    say(f"verify it:     planverify verify {path}")
    say(f"then:          {program()} iterate")
    return Status.OK


class ProjectFolder(RootedFiles):
    """The files of a project, as :class:`planner.authoring.iterations.Planner` reads them."""

    def read_text(self, path: str) -> str | None:
        """Return the beginning of a file as text; ``None`` if it is missing or outside of the folder."""
        file = self.read(path)
        return None if file is None else file.text


def _collect_gaps(log: Sequence[IterationRecord], plan: Path | None = None) -> GapReport:
    """Return the report of all gaps: of the named or the usual plan, the inbox and the roadmap, if any.

    A gap whose last iteration in the log succeeded is left out, even if it is still listed. Raises
    ``UsageMistake`` if there is nothing to read, if the plan was not verified and is named or alone, or if
    its outcomes are out of date and there are no other gaps.
    """
    path, has_lists = plan or usual_plan(), INBOX.is_dir() or ROADMAP.is_file()
    # Without sources, "there are no gaps" would be misleading.
    if not (path or has_lists):
        raise UsageMistake(
            f"there is nothing to read gaps from: no plan, no {INBOX}/ and no {ROADMAP}; make a plan: "
            f"{program()} init, or name one: {program()} gaps --plan PLAN"
        )
    found = None if path is None else find_outcomes(load_flat(path).loaded)
    if found is not None and found.document is None:
        problem = f"{path} was not verified, so its failures are unknown; run: {found.verify}"
        if plan is not None or not has_lists:
            raise UsageMistake(problem)
        complain(problem)
    is_outdated = found is not None and bool(
        found.plan_change or found.changed_todos or found.files.by_todo
    )
    entries = (*gaps_of_inbox(INBOX), *(gaps_of_roadmap(ROADMAP) if ROADMAP.is_file() else ()))
    if closed := [each.evidence[0] for each in entries if is_closed(each, log)]:
        places = listed(closed, 5)
        complain(f"done, but still listed: {places}; check the box, or remove the file")
    failures = gaps_of_outcomes(found.document) if found and found.document else ()
    gaps = (
        # What a run found after the iteration is a gap again.
        *(each for each in failures if not (is_outdated and is_closed(each, log))),
        *(each for each in entries if not is_closed(each, log)),
    )
    if found is not None and is_outdated:
        problem = f"the outcomes of {path} are out of date; run: {found.verify}"
        if not gaps:
            raise UsageMistake(problem)
        complain(problem)
    return GapReport(gaps=gaps)
