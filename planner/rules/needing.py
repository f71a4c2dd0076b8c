"""Which criteria need a test: seen in the outcomes of a run, or read from what the commands select."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.catalog.test_paths import is_test_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.catalog import PytestInvocation
    from planner.model.outcome import Outcome
    from planner.rules.criteria import Criterion


class Certainty(StrEnum):
    """How much is known."""

    RAN = "ran"
    """The last run has run the test for it."""
    SELECTS = "selects"
    """Its command names the test, or what holds it."""
    MAY = "may"
    """Its command may select it: only pytest knows what an expression matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One criterion that needs a test."""

    todo_id: str
    check_id: str
    cmd: str | None
    certainty: Certainty
    because: str
    """What in the command, or in the run, says so."""
    nodeids: tuple[str, ...] = ()
    """The tests of the run that the question covers."""


def needed_in_run(nodeid: str, outcomes: Iterable[Outcome]) -> tuple[Need, ...]:
    """The criteria for which a run has run that test, or tests that it holds."""
    asked = _Place.of(nodeid)
    found: list[Need] = []
    for outcome in outcomes:
        for check in outcome.checks:
            covered = tuple(test.nodeid for test in check.tests if asked.covers(_Place.of(test.nodeid)))
            if covered:
                because = "the last run has run it for this criterion"
                if covered != (nodeid,):
                    because = f"the last run has run {len(covered)} of its tests for this criterion"
                need = Need(
                    todo_id=outcome.todo_id,
                    check_id=check.id,
                    cmd=check.cmd,
                    certainty=Certainty.RAN,
                    because=because,
                    nodeids=covered,
                )
                found.append(need)
    return tuple(found)


def needed_by_commands(nodeid: str, criteria: Mapping[str, Sequence[Criterion]]) -> tuple[Need, ...]:
    """The criteria whose commands select that test, or may. ``criteria`` are by the id of the todo."""
    asked = _Place.of(nodeid)
    return tuple(
        Need(
            todo_id=todo_id,
            check_id=criterion.id,
            cmd=criterion.command.text,
            certainty=certainty,
            because=because,
        )
        for todo_id, of_todo in criteria.items()
        for criterion in of_todo
        if criterion.command is not None and criterion.command.pytest is not None
        for certainty, because in _selecting(asked, criterion.command.pytest)
    )


def _selecting(asked: _Place, command: PytestInvocation) -> Iterator[tuple[Certainty, str]]:
    """At most one: how surely the command selects the test, and why."""
    if any(asked.nodeid.startswith(_Place.of(each).nodeid) for each in command.deselect):
        return  # pytest compares the beginnings of the node ids as texts
    if not command.selections:
        if asked.is_collected:
            yield Certainty.MAY, "its command names no tests, so it runs what the project's settings say"
        return
    for selection in command.selections:
        place = _Place.of(selection)
        if not (place.covers(asked) or asked.covers(place)):
            continue
        narrowing = [
            f"{option} '{value}'"
            for option, value in (("-k", command.keyword), ("-m", command.markexpr))
            if value is not None
        ]
        if narrowing:
            yield Certainty.MAY, f"its command selects {selection}, narrowed by {' and '.join(narrowing)}"
        elif not asked.is_collected and not place.parts:
            yield (
                Certainty.MAY,
                f"its command selects {selection}; the file has no usual name of a test file",
            )
        elif asked.covers(place) and not place.covers(asked):
            yield Certainty.SELECTS, f"its command selects a part of it: {selection}"
        else:
            yield Certainty.SELECTS, f"its command selects {selection}"
        return


@dataclass(frozen=True, slots=True)
class _Place:
    """A node id taken apart: folders and file, then classes and functions, then the parameters."""

    path: tuple[str, ...]
    parts: tuple[str, ...]
    parameters: str | None

    @classmethod
    def of(cls, nodeid: str) -> _Place:
        path, _, rest = nodeid.partition("::")
        folders = tuple(part for part in path.replace("\\", "/").split("/") if part not in ("", "."))
        name, bracket, parameters = rest.partition("[")
        parts = tuple(part for part in name.split("::") if part)
        return cls(folders, parts, bracket + parameters if bracket else None)

    @property
    def nodeid(self) -> str:
        """As pytest writes it."""
        return "::".join(("/".join(self.path), *self.parts)) + (self.parameters or "")

    @property
    def is_collected(self) -> bool:
        """Whether pytest takes it for a test file by its name, or it is a folder or a part of a file."""
        last = self.path[-1] if self.path else ""
        return bool(self.parts) or not last.endswith(".py") or is_test_module(last)

    def covers(self, other: _Place) -> bool:
        """Whether the other is the same, or lies in it."""
        if self.path != other.path:
            return not self.parts and other.path[: len(self.path)] == self.path
        if self.parts != other.parts:
            return self.parameters is None and other.parts[: len(self.parts)] == self.parts
        return self.parameters in (None, other.parameters)
