"""What kind of work a todo asks for, and in which language, told by its words, files and commands.

Past work is compared within a kind. A kind that is told wrongly makes memory compare less well, and does
no other harm.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from planner.model.taxonomy import Role
from planner.policy.criteria import commands_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.plan import Todo

_LONGEST = 2_000
"""Characters of a text that are read."""


class TaskKind(StrEnum):
    """What a todo is there for."""

    FIX_TEST = "fix_test"
    FIX_BUG = "fix_bug"
    ADD_TEST = "add_test"
    ADD_FEATURE = "add_feature"
    REFACTOR = "refactor"
    PERFORMANCE = "performance"
    DOCS = "docs"
    DEPENDENCIES = "dependencies"
    CONFIGURATION = "configuration"
    DESIGN = "design"
    """A contract, a schema, an interface."""
    OTHER = "other"


def _one_of(groups: Mapping[str, str]) -> re.Pattern[str]:
    """Compile words by group, ``*`` for any ending; of several groups the first word of a text decides."""
    parts = (f"(?P<{name}>{'|'.join(words.split())})" for name, words in groups.items())
    return re.compile(rf"\b(?:{'|'.join(parts)})\b".replace("*", r"\w*"))


_DEEDS = _one_of(
    {
        "fix": "fix fixes fixed fixing bugfix bugfixes hotfix hotfixes bug bugs repair* debug* mend* "
        "correct* resolv* failing fail fails failure broken crash* regression flaky",
        "tidy": "refactor* restructur* reorgani* renam* clean* simplif* extract* move moves moved moving "
        "split* inlin* tidy* dedup* remov* delet* drop*",
        "speed": "optimi* speed* faster perform* profil* latency throughput",
        "change": "updat* chang* bump* upgrad* pin migrat* adjust*",
        "add": "add adds added adding implement* creat* build* built* introduc* support* writ* integrat* "
        "provid* enabl* extend* feature* load* develop* make making",
    }
)
"""What is done."""

_THINGS = _one_of(
    {
        "test": "test tests testing pytest unittest assert* fixture fixtures coverage",
        "docs": "doc docs docstring docstrings document* readme changelog tutorial comment comments guide",
        "dependency": "dependenc* requirement requirements lockfile package packages",
        "setting": "config* setting settings ci pipeline tox makefile dockerfile docker lint*",
        "contract": "contract contracts interface interfaces design* schema schemas architecture spec "
        "specs specification*",
    }
)
"""What it is done to."""

_BY_DEED: Mapping[str | None, TaskKind] = {
    "fix": TaskKind.FIX_BUG,
    "tidy": TaskKind.REFACTOR,
    "speed": TaskKind.PERFORMANCE,
    "change": TaskKind.ADD_FEATURE,
    "add": TaskKind.ADD_FEATURE,
}
_BY_THING: Mapping[str | None, tuple[TaskKind, str]] = {
    "test": (TaskKind.ADD_TEST, "add"),
    "docs": (TaskKind.DOCS, "fix tidy change add"),
    "dependency": (TaskKind.DEPENDENCIES, "fix change add"),
    "setting": (TaskKind.CONFIGURATION, "fix change add"),
    "contract": (TaskKind.DESIGN, "change add"),
}
"""The kind of work on a thing, and the deeds with which it is that; with others the deed decides."""

_FILES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:^|/)(?:tests?/|test_[^/]*$|conftest\.py$)|_test\.\w+$"), "test"),
    (re.compile(r"(?:^|/)docs?/|\.(?:md|rst)$"), "docs"),
    (re.compile(r"(?:^|/)(?:requirements[^/]*\.txt|[^/]*\.lock)$"), "dependency"),
    (re.compile(r"(?:^|/)(?:setup\.cfg|[Mm]akefile|Dockerfile|\.[^/]+)$|\.(?:toml|ya?ml|ini)$"), "setting"),
)
"""What a file is, by its path; the first that fits."""

_OF_A_BRANCH = re.compile(r"Repair (.+) \([^()]*\)", re.DOTALL)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_WORD = re.compile(r"[^\W\d]+|\d+(?:\.\d+)*")

PYTHON = "python"
"""The language where nothing tells it: pytest runs what a plan names."""

_LANGUAGES: Mapping[str, str] = {
    "node": ".js .jsx .mjs .cjs .ts .tsx .vue npm npx node yarn pnpm jest vitest eslint tsc",
    "go": ".go go",
    "rust": ".rs cargo",
    PYTHON: ".py .pyi pytest python",
}
_LANGUAGE_OF = {word: language for language, words in _LANGUAGES.items() for word in words.split()}
"""By the ending of a file, or a program of a command."""


def task_kind(todo: Todo) -> TaskKind:
    """Return the kind of work. A branch is of the kind of the todo that it repairs.

    The title is asked first, together with the type of the task; then the intent; then the files and the
    role.
    """
    spec = todo.controller_task_spec
    deed, thing = _told(f"{'' if spec is None else spec.type} {own_title(todo)}")
    if deed is None and thing is None and todo.intent is not None:
        deed, thing = _told(todo.intent[:_LONGEST])
    files = _target(todo) or todo.allowed_files or ()
    found = {next((each for shape, each in _FILES if shape.search(file)), None) for file in files}
    thing = thing or (found.pop() if len(found) == 1 else None)  # where all files are one thing
    if thing == "test" and deed in ("fix", "change"):
        return TaskKind.FIX_TEST
    kind, deeds = _BY_THING.get(thing, (TaskKind.OTHER, ""))
    if thing is not None and (deed is None or deed in deeds.split()):
        return kind
    if deed is not None:
        return _BY_DEED[deed]
    criteria = todo.acceptance_criteria
    if criteria.expected_artifacts or criteria.metrics:
        return TaskKind.ADD_FEATURE
    by_role = {Role.ARCHITECT: TaskKind.DESIGN, Role.TESTER: TaskKind.ADD_TEST}
    return by_role.get(todo.agent_role, TaskKind.OTHER)


def own_title(todo: Todo) -> str:
    """Return the title; of a branch, that of the todo that it repairs, as far as its own title tells."""
    title = todo.title[:_LONGEST]
    inner = _OF_A_BRANCH.fullmatch(title) if todo.parent_id is not None else None
    return title if inner is None else inner[1]


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, those within ``snake_case`` and ``CamelCase`` apart.

    Each number is ``0``: which number it is tells todos apart that are alike.
    """
    apart = _HUMP.sub(" ", text).casefold()
    return ["0" if word[0].isdigit() else word for word in _WORD.findall(apart)]


def language_of(todo: Todo) -> str:
    """Return the language of the first file, else of the first command, that tells it."""
    artifacts = (artifact.path for artifact in todo.acceptance_criteria.expected_artifacts)
    files = (
        PurePosixPath(file).suffix for file in (*_target(todo), *(todo.allowed_files or ()), *artifacts)
    )
    programs = (word for _, spec in commands_of(todo) for word in spec.cmd.split())
    return next((_LANGUAGE_OF[word] for word in (*files, *programs) if word in _LANGUAGE_OF), PYTHON)


def _target(todo: Todo) -> tuple[str, ...]:
    spec = todo.controller_task_spec
    return () if spec is None or spec.target_file is None else (spec.target_file,)


def _told(text: str) -> tuple[str | None, str | None]:
    words = " ".join(words_of(text))
    deed, thing = _DEEDS.search(words), _THINGS.search(words)
    return deed and deed.lastgroup, thing and thing.lastgroup
