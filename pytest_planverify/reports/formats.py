"""The report formats, and writing of the requested reports.

Each format renders the outcomes of a run; none changes them or the exit status. The module is imported
while options are parsed, in the process that runs the tests. Therefore it imports no module whose name the
project under test could shadow, except inside functions.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from planner.errors import PlannerError
from planner.planfile.file_writer import STANDARD_OUTPUT, write_file
from planner.planfile.left_files import remember_written
from planner.planfile.plan_folder import HOME, make_home
from planner.text.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.model.outcome import OutcomeDocument
    from planner.model.plan import Todo
    from planner.planfile.tree import FlatPlan
    from pytest_planverify.reports.cases import ReportInput

FOLDER = f"{HOME}/reports"
FORMATS: Mapping[str, str] = {
    "junit": "junit.xml",
    "ctrf": "ctrf.json",
    "sarif": "planverify.sarif",
    "gitlab": "gl-code-quality-report.json",
    "markdown": "report.md",
    "html": "report.html",
    "prometheus": "planverify.prom",
}
"""Default file name by format. Each format is a module of this package with a function ``render``,
which returns text, or data to be written as JSON."""


class Report(NamedTuple):
    """A report that the user requested."""

    format: str
    path: Path | None
    """Output file; ``None`` for the default place, ``-`` for standard output."""


def parse_report(text: str, folder: Path) -> Report:
    """Parse ``FORMAT[=PATH]``, the path relative to ``folder``. Raises ``ValueError`` with one line."""
    name, equals, path = text.partition("=")
    if name not in FORMATS:
        raise ValueError(
            f"'{one_line(name, limit=60)}' is not a report format; the formats are {', '.join(FORMATS)}"
        )
    if equals and not path:
        raise ValueError(f"{text} names no file; remove the = for the default file")
    if not equals:
        return Report(name, None)
    return Report(name, STANDARD_OUTPUT if path == str(STANDARD_OUTPUT) else folder / path)


def report_input(document: OutcomeDocument, plans: Iterable[FlatPlan]) -> ReportInput:
    """Return the input of all formats: the outcomes, and of each plan its name, todos, root and file.

    The paths are relative to the repository, found by its ``.git``, else to the current directory.
    """
    from pytest_planverify.reports.cases import ReportInput

    folders: dict[str, str] = {}
    todos: dict[str, Sequence[Todo]] = {}
    files: dict[str, str] = {}
    names: dict[str, str | None] = {}
    for loaded in (flat.loaded for flat in plans):
        root = loaded.root
        tops = (folder for folder in (root, *root.parents) if (folder / ".git").exists())
        top = next(tops, Path.cwd())
        folder, file = (os.path.relpath(each, top).replace(os.sep, "/") for each in (root, loaded.path))
        folders[loaded.plan.todo_list_id] = "" if folder == "." else folder
        files[loaded.plan.todo_list_id] = file
        todos[loaded.plan.todo_list_id] = loaded.plan.items
        names[loaded.plan.todo_list_id] = loaded.plan.workflow_name
    return ReportInput(document, folders, todos, files, names)


def write_reports(given: ReportInput, reports: Sequence[Report], root: Path) -> Iterator[str]:
    """Write the reports, by default below ``root``. Yields an error line for each that fails."""
    for report in reports:
        path = path_of(report, root)
        try:
            if report.path is None:
                make_home(root)
            write_file(path, render(report.format, given))
            remember_written(path)  # so that it does not count as somebody's work
        except PlannerError as error:
            yield f"report {report.format}: {error}"
        except Exception as error:  # a faulty report must not invalidate the outcomes
            yield one_line(f"report {report.format}: {path}: cannot be made: {error!r}", limit=500)


def path_of(report: Report, root: Path) -> Path:
    """Return the file of a report: the requested one, else that of its format below ``root``."""
    return report.path or root / FOLDER / FORMATS[report.format]


def render(name: str, given: ReportInput) -> str:
    """Return the text of the report in the format ``name``, a key of ``FORMATS``."""
    report = import_module(f"pytest_planverify.reports.{name}").render(given)
    return report if isinstance(report, str) else json.dumps(report, indent=1) + "\n"


def report_to_github(given: ReportInput, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield workflow commands and append the step summary if ``environment`` is that of GitHub Actions."""
    if environment.get("GITHUB_ACTIONS") != "true":
        return
    from pytest_planverify.reports.markdown import error_commands

    try:
        yield from error_commands(given)
        if summary := environment.get("GITHUB_STEP_SUMMARY"):
            with open(summary, "ab") as file:  # earlier commands of the step share it
                file.write(render("markdown", given).encode("utf-8", "replace"))
            remember_written(Path(summary))
    except Exception as error:  # as in write_reports
        yield one_line(f"GITHUB_STEP_SUMMARY: cannot be written: {error}", limit=500)
