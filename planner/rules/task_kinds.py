"""What kind of work a todo asks for, told by its words and its files: one short list for all plans.

Past work is compared within a kind. A kind that is told wrongly makes memory compare less well, and does
no other harm.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.model.taxonomy import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.model.plan import Todo


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


def task_kind(todo: Todo) -> TaskKind:
    """The kind of work. A branch is of the kind of the todo that it repairs.

    The title is asked first, together with the type of the task; then the intent; then the files and the
    role. What is done (fix, add, …) and what it is done to (a test, the docs, …) make the kind.
    """
    spec = todo.controller_task_spec
    deed, thing = _told(" ".join(["" if spec is None else spec.type, own_title(todo)]))
    if deed is None and thing is None and todo.intent is not None:
        deed, thing = _told(todo.intent[:_LONGEST])
    thing = thing or _thing_of(todo)
    if deed is None and thing is None:
        return _by_surroundings(todo)
    return _KINDS.get((deed, thing)) or _KINDS[deed, None]


def own_title(todo: Todo) -> str:
    """The title; of a branch, that of the todo that it repairs, as far as its own title tells."""
    title = todo.title[:_LONGEST]
    inner = _OF_A_BRANCH.fullmatch(title) if todo.parent_id is not None else None
    return title if inner is None else inner[1]


def words_of(text: str) -> list[str]:
    """The words of a text in small letters, those within ``snake_case`` and ``CamelCase`` apart, and each
    number as ``0``: which number it is tells todos apart that are alike."""
    apart = _HUMP.sub(" ", text).casefold()
    return ["0" if word[0].isdigit() else word for word in _WORD.findall(apart)]


_LONGEST = 2_000
"""Characters of a text that are read."""

_OF_A_BRANCH = re.compile(r"Repair (.+) \([^()]*\)", re.DOTALL)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_WORD = re.compile(r"[^\W\d]+|\d+(?:\.\d+)*")

_DEEDS = re.compile(
    r"""\b(?:
      (?P<fix> fix(?:e[sd]|ing)? | (?:bug|hot)fix(?:es)? | bugs? | repair\w* | debug\w* | mend\w*
             | correct\w* | resolv\w* | failing | fails? | failure | broken | crash\w* | regression
             | flaky )
    | (?P<tidy> refactor\w* | restructur\w* | reorgani\w+ | renam\w+ | clean\w* | simplif\w+ | extract\w*
             | mov(?:e|es|ed|ing) | split\w* | inlin\w+ | tidy\w* | dedup\w* | remov\w+
             | delet\w+ | drop\w* )
    | (?P<speed> optimi\w+ | speed\w* | faster | perform\w* | profil\w+ | latency | throughput )
    | (?P<change> updat\w+ | chang\w+ | bump\w* | upgrad\w+ | pin | migrat\w+ | adjust\w* )
    | (?P<add> add(?:s|ed|ing)? | implement\w* | creat\w+ | buil[dt]\w* | introduc\w+ | support\w* | writ\w+
             | integrat\w+ | provid\w+ | enabl\w+ | extend\w* | feature\w* | load\w*
             | develop\w* | mak(?:e|ing) )
    )\b""",
    re.VERBOSE,
)

_THINGS = re.compile(
    r"""\b(?:
      (?P<test> tests? | testing | pytest | unittest | assert\w* | fixtures? | coverage )
    | (?P<docs> docs? | docstrings? | document\w* | readme | changelog | tutorial | comments? | guide )
    | (?P<dependency> dependenc\w+ | requirements? | lockfile | packages? )
    | (?P<setting> config\w* | settings? | ci | pipeline | tox | makefile | dockerfile | docker | lint\w* )
    | (?P<contract> contracts? | interfaces? | design\w* | schemas? | architecture | specs?
             | specification\w* )
    )\b""",
    re.VERBOSE,
)

_KINDS: Mapping[tuple[str | None, str | None], TaskKind] = {
    ("fix", None): TaskKind.FIX_BUG,
    ("fix", "test"): TaskKind.FIX_TEST,
    ("fix", "docs"): TaskKind.DOCS,
    ("fix", "dependency"): TaskKind.DEPENDENCIES,
    ("fix", "setting"): TaskKind.CONFIGURATION,
    ("tidy", None): TaskKind.REFACTOR,
    ("tidy", "docs"): TaskKind.DOCS,
    ("speed", None): TaskKind.PERFORMANCE,
    ("change", None): TaskKind.ADD_FEATURE,
    ("change", "test"): TaskKind.FIX_TEST,
    ("change", "docs"): TaskKind.DOCS,
    ("change", "dependency"): TaskKind.DEPENDENCIES,
    ("change", "setting"): TaskKind.CONFIGURATION,
    ("change", "contract"): TaskKind.DESIGN,
    ("add", None): TaskKind.ADD_FEATURE,
    ("add", "test"): TaskKind.ADD_TEST,
    ("add", "docs"): TaskKind.DOCS,
    ("add", "dependency"): TaskKind.DEPENDENCIES,
    ("add", "setting"): TaskKind.CONFIGURATION,
    ("add", "contract"): TaskKind.DESIGN,
    (None, "test"): TaskKind.ADD_TEST,
    (None, "docs"): TaskKind.DOCS,
    (None, "dependency"): TaskKind.DEPENDENCIES,
    (None, "setting"): TaskKind.CONFIGURATION,
    (None, "contract"): TaskKind.DESIGN,
}
"""What is done, and to what. Where a pair has no row, the deed alone decides."""

_BY_ROLE: Mapping[Role, TaskKind] = {Role.ARCHITECT: TaskKind.DESIGN, Role.TESTER: TaskKind.ADD_TEST}

_FILES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?:^|/)(?:tests?/|test_[^/]*$|conftest\.py$)|_test\.\w+$"), "test"),
    (re.compile(r"(?:^|/)docs?/|\.(?:md|rst)$"), "docs"),
    (re.compile(r"(?:^|/)(?:requirements[^/]*\.txt|[^/]*\.lock)$"), "dependency"),
    (
        re.compile(r"(?:^|/)(?:tox\.ini|setup\.cfg|Makefile|Dockerfile|\.[^/]+)$|\.(?:toml|ya?ml|ini)$"),
        "setting",
    ),
)
"""What a file is, by its path; the first that fits."""


def _told(text: str) -> tuple[str | None, str | None]:
    words = " ".join(words_of(text))
    deed, thing = _DEEDS.search(words), _THINGS.search(words)
    return deed and deed.lastgroup, thing and thing.lastgroup


def _thing_of(todo: Todo) -> str | None:
    """What all the files are that the todo may change, where that is one thing."""
    spec = todo.controller_task_spec
    named = () if spec is None or spec.target_file is None else (spec.target_file,)
    files = named or todo.allowed_files or ()
    found = {next((thing for shape, thing in _FILES if shape.search(file)), None) for file in files}
    return found.pop() if len(found) == 1 else None


def _by_surroundings(todo: Todo) -> TaskKind:
    if todo.acceptance_criteria.expected_artifacts or todo.acceptance_criteria.metrics:
        return TaskKind.ADD_FEATURE
    return _BY_ROLE.get(todo.agent_role, TaskKind.OTHER)
