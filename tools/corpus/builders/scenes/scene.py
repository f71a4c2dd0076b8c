"""What a scene is: what a project gets, the state of the machine, a change, and what is true then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.model.taxonomy import Category, Owner, Repeatability
from tools.corpus.case import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a project finds around itself.

    In all texts ``SITE`` stands for the folder of installed packages, ``BIN`` for that of programs,
    ``VAR`` for one of data, ``PROJECT`` for the project and ``PORTNUMBER`` for a port that is free.
    """

    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    installed: tuple[str, ...] = ()
    """Names of stand-ins for third-party packages."""
    programs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Programs on the path: shell scripts."""
    plugins: tuple[str, ...] = ()
    """Modules of the stand-ins that pytest loads."""
    before: str = ""
    """Lines of shell that run before the interpreter, in the same process."""
    apart: str = ""
    """Options of ``unshare``: the lines run in namespaces of their own, which end with the run."""
    user: bool = False
    """The run has no rights but those of an ordinary user."""
    service: str | None = None
    """A service that listens on ``PORTNUMBER``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change of one file; without ``before`` the file is new, without ``after`` it is removed."""

    path: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is true of a failure by construction."""

    category: Category
    owner: Owner
    repeatability: Repeatability | None = Repeatability.DETERMINISTIC
    also: tuple[Reading, ...] = ()
    exact: bool = False
    """The edited line itself raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One kind of fault in one shape, for several projects.

    In all texts ``PKG``, ``ENVNAME``, ``SRC``, ``TESTS``, ``NOUN`` stand for the names of the project.
    """

    kind: str
    says: str
    """One sentence: what is wrong."""
    projects: tuple[str, ...]
    truth: Truth
    module: str
    """The name of the module that the project gets, and of its test file."""
    product: str = ""
    test: str = ""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """More files, by path; they take the place of equal ones."""
    edits: tuple[Edit, ...] = ()
    healthy: Machine = Machine()
    ill: Machine = Machine()
    cmd: str = "pytest TESTS/test_MODULE.py"
    shape: str = ""
    """Tells scenes of one kind apart."""
    git: bool = True
    styled: bool = True
    """The tests may be rewritten in the project's style."""
    criteria: Mapping[str, Any] | None = None
    """The criteria of the todo, where they are more than the one command."""
    todo: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More keys of the todo."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    baseline: bool = False
    """A baseline is recorded before the change."""
    check: str = "tests[0]"
    """The criterion that fails."""
    flaky: bool = False
    """Repeated runs give both answers."""
    green_plan: bool = False
    """Whether it was green before is a question to a run with the plan, not to pytest alone."""
    options: tuple[str, ...] = ()
    green_cmd: str = ""
    """What was green, where the fault is in the command."""

    @property
    def needs_root(self) -> bool:
        """Whether only root can make it."""
        return any(state.user or state.apart for state in (self.healthy, self.ill))


def product(category: Category = Category.TEST_REGRESSION, *also: Reading, exact: bool = False) -> Truth:
    """The product is at fault."""
    return Truth(category=category, owner=Owner.PRODUCT, also=also, exact=exact)


def of_tests(category: Category = Category.TEST_REGRESSION, *also: Reading, exact: bool = False) -> Truth:
    """The tests themselves are at fault."""
    return Truth(category=category, owner=Owner.TEST, also=also, exact=exact)


def machine(*also: Reading) -> Truth:
    """Something around the project is at fault."""
    return Truth(category=Category.ENVIRONMENT_ERROR, owner=Owner.ENVIRONMENT, also=also)


def reading(category: Category, owner: Owner, why: str) -> Reading:
    """Another reading that an engineer would accept."""
    return Reading(category=category, owner=owner, why=why)
