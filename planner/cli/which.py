"""``planner which``: the criteria that need a test, as the last run saw it, or as the commands select."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from planner.cli.app import command_app
from planner.cli.arguments import JsonOption, OutcomesOption, PlanArgument, plan_or_usual
from planner.cli.ending import Status, ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.catalog import PytestInvocation
    from planner.model.outcome import Outcome
    from planner.planfile.loader import LoadedPlan
    from planner.policy.criteria import Criterion

_TEST_FILE = re.compile(r"(?:test_[^/]*|[^/]*_test)\.py")
"""The files that pytest collects from a folder, unless the project says otherwise."""

app = command_app()


class Need(NamedTuple):
    """One criterion that needs a test."""

    todo_id: str
    check_id: str
    cmd: str | None
    certainty: str
    """``ran``: the last run has run it; ``selects``: its command names it; ``may``: only pytest knows."""
    because: str
    """What in the command, or in the run, says so."""
    nodeids: tuple[str, ...] = ()
    """The tests of the run that the question covers."""


@app.command(
    epilog="Exit status: 0 found, 1 no criterion needs it, 2 wrong usage, 4 a file cannot be read."
)
@ends
def which(
    nodeid: Annotated[
        str,
        typer.Argument(metavar="NODEID", help="A test as pytest names it; or a file, folder or class."),
    ],
    plan: PlanArgument = None,
    outcomes: OutcomesOption = None,
    as_json: JsonOption = False,
) -> int:
    """Tell which criteria of a plan need a test.

    Where the plan was verified as it is now, the run knows exactly. Else it is read from what the commands
    select; what -k and -m match only pytest knows, and such a command may need the test.
    """
    from planner.errors import OutcomeFileError
    from planner.planfile.latest_outcomes import find_outcomes
    from planner.planfile.tree import load_tree

    flat = load_tree(plan_or_usual(plan)).load_all().flat()
    loaded = flat.loaded
    asked = _below_root(nodeid, loaded)
    needs: list[Need] = []
    remark = None
    try:
        found = find_outcomes(loaded, outcomes, flat.files)
        remark = found.plan_change
        if found.document is None:
            remark = f"the plan was not verified yet; run first: {found.verify}"
        elif remark is None:
            needs += needed_in_run(asked, found.document.outcomes)
    except OutcomeFileError as error:
        if outcomes is not None:
            raise
        remark = str(error)
    seen = {(need.todo_id, need.check_id) for need in needs}
    read = needed_by_commands(asked, loaded.criteria)
    needs += [need for need in read if (need.todo_id, need.check_id) not in seen]
    if as_json:
        from planner.cli.screen import write

        document: dict[str, Any] = {"nodeid": asked, "remark": remark}
        document["criteria"] = [need._asdict() for need in needs]
        write(json.dumps(document, indent=2, sort_keys=True) + "\n")
    else:
        _show(asked, needs, remark)
    return Status.OK if needs else Status.FOUND


def needed_in_run(nodeid: str, outcomes: Iterable[Outcome]) -> Iterator[Need]:
    """Yield the criteria for which a run has run that test, or tests that it holds."""
    asked = _place_of(nodeid)
    for outcome in outcomes:
        for check in outcome.checks:
            nodeids = tuple(test.nodeid for test in check.tests if asked.covers(_place_of(test.nodeid)))
            what = "it" if nodeids == (nodeid,) else f"{len(nodeids)} of its tests"
            because = f"the last run has run {what} for this criterion"
            if nodeids:
                yield Need(outcome.todo_id, check.id, check.cmd, "ran", because, nodeids)


def needed_by_commands(nodeid: str, criteria: Mapping[str, Sequence[Criterion]]) -> Iterator[Need]:
    """Yield the criteria, which are by the id of the todo, whose commands select that test, or may."""
    asked = _place_of(nodeid)
    for todo_id, of_todo in criteria.items():
        for criterion in of_todo:
            if criterion.command is not None and criterion.command.pytest is not None:
                found = _selects(asked, criterion.command.pytest)
                if found is not None:
                    yield Need(todo_id, criterion.id, criterion.command.text, *found)


def _selects(asked: _Place, command: PytestInvocation) -> tuple[str, str] | None:
    """Return how surely the command selects the test, and why; ``None`` if it does not."""
    if any(asked.nodeid.startswith(_place_of(each).nodeid) for each in command.deselect):
        return None  # pytest compares the beginnings of the node ids as texts
    if not command.selections:
        because = "its command names no tests, so it runs what the project's settings say"
        return ("may", because) if asked.is_collected else None
    options = (("-k", command.keyword), ("-m", command.markexpr))
    narrowing = " and ".join(f"{option} '{value}'" for option, value in options if value is not None)
    for selection in command.selections:
        place = _place_of(selection)
        if not (place.covers(asked) or asked.covers(place)):
            continue
        if narrowing:
            return "may", f"its command selects {selection}, narrowed by {narrowing}"
        if not asked.is_collected and not place.parts:
            return "may", f"its command selects {selection}; the file has no usual name of a test file"
        part = "" if place.covers(asked) else "a part of it: "
        return "selects", f"its command selects {part}{selection}"
    return None


class _Place(NamedTuple):
    """A node id taken apart: folders and file, then classes and functions, then the parameters."""

    path: tuple[str, ...]
    parts: tuple[str, ...]
    parameters: str | None

    @property
    def nodeid(self) -> str:
        """As pytest writes it."""
        return "::".join(("/".join(self.path), *self.parts)) + (self.parameters or "")

    @property
    def is_collected(self) -> bool:
        """Whether pytest takes it for a test file by its name, or it is a folder or a part of a file."""
        last = self.path[-1] if self.path else ""
        return bool(self.parts) or not last.endswith(".py") or bool(_TEST_FILE.fullmatch(last))

    def covers(self, other: _Place) -> bool:
        """Whether the other is the same, or lies in it."""
        if self.path != other.path:
            return not self.parts and other.path[: len(self.path)] == self.path
        if self.parts != other.parts:
            return self.parameters is None and other.parts[: len(self.parts)] == self.parts
        return self.parameters in (None, other.parameters)


def _place_of(nodeid: str) -> _Place:
    path, _, rest = nodeid.partition("::")
    folders = tuple(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))
    name, bracket, parameters = rest.partition("[")
    parts = tuple(part for part in name.split("::") if part)
    return _Place(folders, parts, bracket + parameters if bracket else None)


def _below_root(nodeid: str, loaded: LoadedPlan) -> str:
    """Return the node id relative to the plan's root, for a file that is named from where the user is."""
    name, colons, rest = nodeid.partition("::")
    path = Path(name).absolute()
    if (loaded.root / name).exists() or not path.exists():
        return nodeid
    try:
        return f"{path.resolve().relative_to(loaded.root).as_posix()}{colons}{rest}"
    except ValueError:
        return nodeid


def _show(nodeid: str, needs: Sequence[Need], remark: str | None) -> None:
    from planner.cli.screen import Screen
    from planner.text.display import counted

    screen = Screen()
    if remark:
        screen.remark(remark)
    if not needs:
        screen.paragraph(f"No criterion of the plan needs {nodeid}.")
    else:
        screen.paragraph(f"{nodeid} is needed by {counted(len(needs), 'criterion')}:")
    for need in needs:
        word = "may need it" if need.certainty == "may" else "needs it"
        screen.line(f"  {screen.style(screen.one_line(need.todo_id), 'strong')} {need.check_id}  {word}")
        if need.cmd:
            screen.line(f"    {screen.one_line(need.cmd)}")
        screen.paragraph(need.because, indent=4)
    screen.show()
