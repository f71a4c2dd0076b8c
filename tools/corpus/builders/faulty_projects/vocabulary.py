"""What a small project with known faults is: its files, its todos, and the faults to put into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from planner.model.taxonomy import Category, Owner, Repeatability
from tools.corpus.case import Label, Place, Reading


class Turn(IntEnum):
    """When an engineer takes a fault up: what keeps others from being seen comes first."""

    UNDERLYING = 0
    """Nothing that rests on it can run: an import, a syntax error, a conftest, a fixture, a service."""
    ORDINARY = 1
    UNSTABLE = 2
    """It comes and goes: after all that is red every time."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement in a file; without ``before`` the file is removed."""

    path: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault and what is true of it."""

    kind: str
    label: Label
    edits: tuple[Edit, ...] = ()
    turn: Turn = Turn.ORDINARY
    without_service: bool = False
    """The service that the tests ask for is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project that is green as it stands."""

    name: str
    files: Mapping[str, str]
    todos: Mapping[str, Mapping[str, Any]]
    """Acceptance criteria by todo."""
    depends: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    faults: tuple[Fault, ...]
    service: bool = False
    """The tests connect to the port that ``SERVICE_PORT`` names."""


KINDS: Mapping[str, str] = {
    "broken-shared-fixture": "A fixture that many tests use raises.",
    "broken-conftest": "A conftest cannot be imported.",
    "syntax-error": "A module that others import does not parse.",
    "missing-module": "A module of the project is gone.",
    "missing-dependency": "A module imports a package that is not installed.",
    "renamed-function": "A function that many tests and modules use has another name.",
    "changed-signature": "A function asks for another argument than its callers give.",
    "wrong-value": "A function gives a wrong value.",
    "wrong-value-below": "A function that other functions use gives a wrong value.",
    "raises-below": "A function that other functions use raises.",
    "refuses-below": "A check of values that others use refuses good ones.",
    "lost-attribute": "A class no longer sets an attribute that its methods use.",
    "none-below": "A function that other functions use gives None.",
    "absent-service": "A service that a session fixture connects to is not there.",
    "absent-tool": "A program that the product starts is not on this machine.",
    "flaky-test": "A test that fails every other time.",
    "type-and-tests": "What a type checker complains of, and tests fail by.",
    "typo-in-test": "A test uses a name that is not there.",
    "wrong-helper": "A function that tests share computes wrongly.",
    "unwritten-artifact": "A function that writes an artifact fails, and the artifact is not there.",
}


def by_product(
    path: str, function: str | None = None, category: Category = Category.TEST_REGRESSION, *also: Reading
) -> Label:
    """The product is at fault, every time."""
    return _label(category, Owner.PRODUCT, path, function, also)


def by_test(path: str, function: str | None = None) -> Label:
    """The tests' own code is at fault, every time."""
    return _label(Category.TEST_REGRESSION, Owner.TEST, path, function, ())


def by_environment(path: str, function: str | None = None) -> Label:
    """Something that the machine lacks."""
    return _label(Category.ENVIRONMENT_ERROR, Owner.ENVIRONMENT, path, function, ())


def syntax_error(path: str, owner: Owner = Owner.PRODUCT) -> Label:
    return _label(Category.COMPILATION_ERROR, owner, path, None, ())


def flaky(path: str, function: str) -> Label:
    return Label(
        category=Category.FLAKY_TEST,
        owner=Owner.TEST,
        repeatability=Repeatability.FLAKY,
        place=Place(path=path, function=function),
    )


def removed_module(path: str) -> Label:
    also = Reading(category=Category.SPEC_MISMATCH, owner=Owner.PRODUCT, why="the tests promise the module")
    return _label(Category.ARTIFACT_MISSING, Owner.PRODUCT, path, None, (also,))


def _label(
    category: Category, owner: Owner, path: str, function: str | None, also: tuple[Reading, ...]
) -> Label:
    return Label(
        category=category,
        owner=owner,
        repeatability=Repeatability.DETERMINISTIC,
        also=also,
        place=Place(path=path, function=function),
    )


def tests(*commands: str) -> dict[str, Any]:
    """Acceptance criteria of commands."""
    return {"tests": [{"cmd": command, "timeout_seconds": 60} for command in commands]}


SERVICE_FIXTURE = """
@pytest.fixture(scope="session")
def service():
    address = ("127.0.0.1", int(os.environ["SERVICE_PORT"]))
    with socket.create_connection(address, timeout=5) as connection:
        yield connection
"""
"""A session fixture that needs a service."""

EVERY_OTHER_TIME = """
def test_settles_in_time():
    tries = pathlib.Path(".tries")
    seen = int(tries.read_text()) if tries.exists() else 0
    tries.write_text(str(seen + 1))
    assert seen % 2 == 1
"""
"""A test that fails at its first, third and fifth try."""

SETTLED = """
def test_settles_in_time():
    assert pathlib.Path(".").is_dir()
"""
