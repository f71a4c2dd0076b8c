"""What a case of the corpus is: a recorded failure, what is true of it by construction, its origin."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from planner.model.base import ReadValue
from planner.model.evidence import Evidence
from planner.model.taxonomy import Category, Owner, Repeatability


class Group(StrEnum):
    """How a case came to be."""

    INJECTED = "injected"
    """A fault was put into the code of a published package."""
    DECOY = "decoy"
    """A small project whose failure looks like another kind of failure, or comes in an odd way."""
    ENVIRONMENT = "environment"
    """Something outside the project is not as it should be."""
    GUARD = "guard"
    """What a guard or a criterion other than a test finds: hygiene, sandbox, budget, artifact, metric."""
    COMMAND = "command"
    """The criterion is a command: a type checker, a linter, a compiler, another test runner."""
    CONTROL = "control"
    """An honest change: nothing may be said against it."""


class Place(ReadValue):
    """Where the fault is, by construction."""

    path: str
    """Relative to the project."""
    first_line: int | None = None
    last_line: int | None = None
    function: str | None = None
    """Qualified name of the function that holds it."""
    exact: bool = False
    """The fault itself raises there: a diagnosis that names another line is wrong."""


class Reading(ReadValue):
    """Another reading that an engineer would accept."""

    category: Category
    owner: Owner
    why: str


class Label(ReadValue):
    """What is true of a failure."""

    category: Category
    owner: Owner
    repeatability: Repeatability | None = None
    """``None`` where repeated runs say nothing, as of commands and selections."""
    also: tuple[Reading, ...] = ()
    """Where the case is truly ambiguous."""
    place: Place | None = None

    def accepts(self, category: Category, owner: Owner) -> bool:
        """Whether this category and owner are the true ones, or acceptable."""
        return (category, owner) in self.readings

    @property
    def readings(self) -> tuple[tuple[Category, Owner], ...]:
        """The true reading first, then those that are accepted."""
        return ((self.category, self.owner), *((each.category, each.owner) for each in self.also))


class Origin(ReadValue):
    """How to make the case again."""

    package: str
    """The package, or the small project, that the failure was made in: the unit of the split."""
    version: str | None = None
    sha256: str | None = None
    """Of the package's source distribution."""
    kind: str
    """The kind of fault, by its name in the builder: the other unit of the split."""
    seed: int = 0
    file: str | None = None
    line: int | None = None
    before: str = ""
    after: str = ""
    """The source as it was and as it is: a few lines."""
    command: str = ""
    """The criterion that failed."""
    python: str = ""
    pytest: str = ""


class Gates(ReadValue):
    """What was checked before the case was let in."""

    green_before: bool
    red_runs: int
    """How often it was red, of ``runs``."""
    runs: int
    executed: bool | None = None
    """The injected line ran; ``None`` where there is no line to run."""


class Case(ReadValue):
    """One case of the corpus."""

    id: str
    group: Group
    origin: Origin
    gates: Gates
    label: Label | None = None
    """``None`` for an honest control."""
    evidence: Evidence | None = None
    """The failure as it was recorded; ``None`` for a control that was not flagged."""
    flagged: tuple[str, ...] = ()
    """What a run said against a control, though it should not."""


class RunFailure(ReadValue):
    """One failure of a run with several faults."""

    todo: str
    evidence: Evidence
    fault: int
    """Which of the faults caused it, counted from 0."""


class FaultyRun(ReadValue):
    """One run of a plan over a project with one or more faults: are their consequences told apart?"""

    id: str
    package: str
    kinds: tuple[str, ...]
    """Of each fault."""
    labels: tuple[Label, ...]
    """Of each fault."""
    todos: tuple[str, ...]
    """In the plan's order."""
    depends: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Todo to the todos that it depends on."""
    failures: tuple[RunFailure, ...]
    first: tuple[int, ...]
    """The faults that an engineer would repair first; any of them is right."""
