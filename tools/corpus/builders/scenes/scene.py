"""The scenes and their projects: files, the state of the machine, a change, and the true diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml
from edits import Edit, Text
from pydantic import TypeAdapter

from planner.model.base import Value
from planner.model.taxonomy import Category, Owner, Repeatability
from tools.corpus.case import Group, Reading


class Style(StrEnum):
    """Style in which the tests of a project are written."""

    FUNCTIONS = "functions"
    CLASSES = "classes"
    UNITTEST = "unittest"


class Project(Value):
    """A project without the files of a scene."""

    name: str
    """Name of the project, and of its package."""
    source: str
    """Folder of the package."""
    tests: str
    """Folder of the tests."""
    style: Style
    noun: str
    """Subject of the project, in the singular."""
    settings: Mapping[str, str]
    """Configuration files by path."""
    files: Mapping[str, str]
    """All other files, with ``SRC`` and ``TESTS`` for the two folders."""

    def named(self, text: str) -> str:
        """Replace ``PKG``, ``ENVNAME``, ``SRC``, ``TESTS`` and ``NOUN`` by the names of this project."""
        words = {
            "ENVNAME": self.name.upper(),
            "PKG": self.name,
            "SRC": self.source,
            "TESTS": self.tests,
            "NOUNS": f"{self.noun}s",
            "Noun": self.noun.capitalize(),
            "NOUN": self.noun,
        }
        for word, name in words.items():
            text = text.replace(word, name)
        return text

    def tree(self) -> dict[str, str]:
        """Return every file by its path."""
        return {**{self.named(path): text for path, text in self.files.items()}, **self.settings}

    @property
    def base_module(self) -> str:
        """Return a module that no fault affects."""
        return self.named(next(path for path in self.files if path.startswith("SRC/") and self.files[path]))

    @property
    def base_test(self) -> str:
        """Return a test file that no fault affects."""
        return self.named(next(path for path in self.files if path.startswith("TESTS/test_")))


class Machine(Value):
    """The environment of a project.

    In all texts ``SITE`` stands for the folder of installed packages, ``BIN`` for that of programs,
    ``VAR`` for one of data, ``PROJECT`` for the project and ``PORTNUMBER`` for a free port.
    """

    variables: Mapping[str, str] = {}
    installed: tuple[str, ...] = ()
    """Names of stand-ins for third-party packages."""
    programs: Mapping[str, str] = {}
    """Programs on the path: shell scripts."""
    plugins: tuple[str, ...] = ()
    """Modules of the stand-ins that pytest loads."""
    before: Text = ""
    """Lines of shell that run before the interpreter, in the same process."""
    apart: str = ""
    """Options of ``unshare``: the lines run in namespaces of their own, which end with the run."""
    user: bool = False
    """Whether the run has the permissions of an ordinary user only."""
    service: str | None = None
    """A service that listens on ``PORTNUMBER``."""


class Truth(Value):
    """The true diagnosis of a failure, known because the fault was planted."""

    category: Category
    owner: Owner
    repeatability: Repeatability | None = Repeatability.DETERMINISTIC
    also: tuple[Reading, ...] = ()
    exact: bool = False
    """Whether the edited line itself raises."""


class Scene(Value):
    """One kind of fault in one form, for several projects.

    In all texts ``PKG``, ``ENVNAME``, ``SRC``, ``TESTS``, ``NOUN`` stand for the names of the project.
    """

    kind: str
    says: str
    """One sentence that says what is wrong."""
    projects: tuple[str, ...]
    truth: Truth
    module: str
    """Name of the module that the project gets, and of its test file."""
    product: Text = ""
    test: Text = ""
    files: Mapping[str, Text] = {}
    """More files, by path; they replace files of the same path."""
    edits: tuple[Edit, ...] = ()
    healthy: Machine = Machine()
    ill: Machine = Machine()
    cmd: str = "pytest TESTS/test_MODULE.py"
    shape: str = ""
    """Distinguishes scenes of one kind."""
    git: bool = True
    styled: bool = True
    """Whether the tests may be rewritten in the project's style."""
    criteria: Mapping[str, Any] | None = None
    """Criteria of the todo, if there are more than the one command."""
    todo: Mapping[str, Any] = {}
    """More keys of the todo."""
    metadata: Mapping[str, Any] = {}
    baseline: bool = False
    """Whether a baseline is recorded before the change."""
    check: str = "tests[0]"
    """The criterion that fails."""
    flaky: bool = False
    """Whether repeated runs both pass and fail."""
    green_plan: bool = False
    """Whether a run with the plan, rather than pytest alone, tells if it passed before."""
    options: tuple[str, ...] = ()
    green_cmd: str = ""
    """The command that passed before, if the fault is in the command."""


_SCENES = TypeAdapter(tuple[Scene, ...])


def read_scenes(group: Group) -> tuple[Scene, ...]:
    """Return the scenes of a group, from the files ``GROUP*.yaml``.

    Raises ``pydantic.ValidationError`` for a key or value that a scene does not have.
    """
    files = sorted(Path(__file__).parent.glob(f"{group.value}*.yaml"))
    return tuple(
        scene
        for file in files
        for scene in _SCENES.validate_python(yaml.safe_load(file.read_text(encoding="utf-8"))["scenes"])
    )


def _read(file: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(file).read_text(encoding="utf-8"))


PROJECTS = {name: Project(name=name, **said) for name, said in _read("projects.yaml").items()}
"""Every small project by its name."""

STAND_INS: dict[str, dict[str, str]] = _read("stand_ins.yaml")
"""Stand-ins for third-party packages: the files of each below the folder of installed packages."""
