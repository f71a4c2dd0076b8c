"""Classification of todos by kind of work and language, from words, files and commands.

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
    """The kind of work of a todo."""

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
        TaskKind.FIX_BUG: "fix fixes fixed fixing bugfix bugfixes hotfix hotfixes bug bugs repair* debug* "
        "mend* correct* resolv* failing fail fails failure broken crash* regression flaky",
        TaskKind.REFACTOR: "refactor* restructur* reorgani* renam* clean* simplif* extract* move moves "
        "moved moving split* inlin* tidy* dedup* remov* delet* drop*",
        TaskKind.PERFORMANCE: "optimi* speed* faster perform* profil* latency throughput",
        TaskKind.ADD_FEATURE: "add adds added adding implement* creat* build* built* introduc* support* "
        "writ* integrat* provid* enabl* extend* feature* load* develop* make making updat* chang* bump* "
        "upgrad* pin migrat* adjust*",
    }
)
"""What is done, and the kind that it is where nothing tells more."""

_THINGS = _one_of(
    {
        TaskKind.ADD_TEST: "test tests testing pytest unittest assert* fixture fixtures coverage",
        TaskKind.DOCS: "doc docs docstring docstrings document* readme changelog tutorial comment comments "
        "guide",
        TaskKind.DEPENDENCIES: "dependenc* requirement requirements lockfile package packages",
        TaskKind.CONFIGURATION: "config* setting settings ci pipeline tox makefile dockerfile docker lint*",
        TaskKind.DESIGN: "contract contracts interface interfaces design* schema schemas architecture spec "
        "specs specification*",
    }
)
"""What it is done to, and the kind of adding or changing that; tests are fixed, others repaired."""

_FILES = (
    (r"(?:^|/)(?:tests?/|test_[^/]*$|conftest\.py$)|_test\.\w+$", TaskKind.ADD_TEST),
    (r"(?:^|/)docs?/|\.(?:md|rst)$", TaskKind.DOCS),
    (r"(?:^|/)(?:requirements[^/]*\.txt|[^/]*\.lock)$", TaskKind.DEPENDENCIES),
    (
        r"(?:^|/)(?:setup\.cfg|[Mm]akefile|Dockerfile|\.[^/]+)$|\.(?:toml|ya?ml|ini)$",
        TaskKind.CONFIGURATION,
    ),
)
"""What a file is, by its path; the first that fits."""

_DEED_DECIDES = {
    (TaskKind.FIX_BUG, TaskKind.DESIGN),
    *((TaskKind.PERFORMANCE, kind) for kind in TaskKind),
    *((TaskKind.REFACTOR, kind) for kind in TaskKind if kind is not TaskKind.DOCS),
}
"""What is done, and to what, where that is told better by the deed than by the thing."""

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
    found = {next((each for shape, each in _FILES if re.search(shape, file)), None) for file in files}
    thing = thing or (found.pop() if len(found) == 1 else None)  # where all files are one thing
    if deed is TaskKind.FIX_BUG and thing is TaskKind.ADD_TEST:
        return TaskKind.FIX_TEST
    kind = deed if (deed, thing) in _DEED_DECIDES or thing is None else thing
    criteria = todo.acceptance_criteria
    if kind is None and (criteria.expected_artifacts or criteria.metrics):
        return TaskKind.ADD_FEATURE
    by_role = {Role.ARCHITECT: TaskKind.DESIGN, Role.TESTER: TaskKind.ADD_TEST}
    return kind or by_role.get(todo.agent_role, TaskKind.OTHER)


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


def _told(text: str) -> tuple[TaskKind | None, TaskKind | None]:
    words = " ".join(words_of(text))
    deed, thing = _DEEDS.search(words), _THINGS.search(words)
    return (
        TaskKind(deed.lastgroup) if deed and deed.lastgroup else None,
        TaskKind(thing.lastgroup) if thing and thing.lastgroup else None,
    )
