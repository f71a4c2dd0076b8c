"""What a kind of fault under a command criterion is: a use of a tool, a change, and what is true of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner as O
from tools.corpus.case import Reading

TOOL_NEEDS = {
    "make-test": "make",
    "make-lint": "make",
    "make-typecheck": "make",
    "make-dist": "make",
    "make": "gcc",
    "make-check": "gcc",
    "npm-run": "npm",
    "npm-report": "npm",
    "unittest-one": "",
    "unittest": "",
    "doctest": "",
    "script": "",
    "py-compile": "",
    "compileall": "",
    "json-tool": "",
    "mypy-tests": "mypy",
    "mypy-module": "mypy",
    "ruff-concise": "ruff",
    "ruff-format": "ruff",
    "coverage-run": "coverage",
    "make-coverage": "coverage",
    "lint-imports": "import-linter",
    "npm-test": "npm",
    "npm-lint": "eslint",
    "npm-build": "typescript",
    "npx-tsc": "typescript",
    "npx-eslint": "eslint",
    "tsc": "typescript",
    "unittest-service": "",
    "script-silent": "",
    "git-diff": "git",
    "cargo-test": "cargo",
    "cargo-check": "cargo",
    "cargo-build": "cargo",
    "cargo-clippy": "cargo",
    "cargo-fmt": "cargo",
}
"""The tool that must be on the machine, where it is not called as the use is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of fault under one use of a tool."""

    use: str
    """Which of the project's commands."""
    change: str | None
    """Which of the project's changes; ``None`` where the project stays as it is."""
    tells: str
    category: C
    owner: O
    also: tuple[Reading, ...] = ()
    exact: bool = False
    """The tool names the very line."""
    placed: bool = True
    wrong: bool = False
    """The plan's command names what never was there."""
    surroundings: str = ""
    """A key of the table of surroundings, of what the machine lacks."""
    option: str = ""
    """What the plan's command has besides."""
    suffix: str = ""
    limit: float = 60
    """Seconds that the criterion may take."""

    @property
    def name(self) -> str:
        """The name of the kind: the use of the tool, and the fault."""
        fault = self.suffix or self.change or self.surroundings
        return f"{self.use}-{fault}"

    @property
    def needs(self) -> str:
        """The tool without which it cannot be made; empty where every machine has it."""
        return TOOL_NEEDS.get(self.use, self.use)


def kinds_of(
    change: str | None, tells: str, category: C, owner: O, uses: str, **more: object
) -> Iterator[Kind]:
    for use in uses.split():
        yield Kind(use=use, change=change, tells=tells, category=category, owner=owner, **more)  # type: ignore[arg-type]


COMPILER = Reading(category=C.COMPILATION_ERROR, owner=O.PRODUCT, why="the compiler refuses the program")
MODULE = Reading(category=C.SPEC_MISMATCH, owner=O.PRODUCT, why="the tests promise the module")
IMPORT = Reading(
    category=C.IMPORT_ERROR, owner=O.PRODUCT, why="what the checker sees is an import without a module"
)
SETTINGS = Reading(
    category=C.COMPILATION_ERROR, owner=O.PRODUCT, why="a settings file of the project cannot be parsed"
)
VERSION = Reading(
    category=C.ENVIRONMENT_ERROR, owner=O.ENVIRONMENT, why="another version of the tool may know the option"
)
