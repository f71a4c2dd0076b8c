"""Instructions, checked against the tree and the permissions before they are given.

Every sentence of the planner that tells somebody to do something, and every edit of a plan that names a
file, comes through :func:`objection`. Facts about the tree come in as a value; nothing is read here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from planner.catalog.test_paths import is_test_path
from planner.model.failure_report import evidence_of
from planner.model.taxonomy import Category, Owner, Role
from planner.text.glob_patterns import allowed, is_glob, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from planner.model.evidence import Evidence
    from planner.model.failure_report import FailureContext
    from planner.model.outcome import Failure
    from planner.model.plan import Todo

_TESTS_AT_ISSUE = frozenset((Category.FLAKY_TEST, Category.TEST_NOT_FOUND))
"""Categories in which the tests may be what has to change."""

_OWN_FOLDERS = (".planverify/", "diagnostics/", "/", "../")
ABSENT = ("missing", "no_match")
"""What is wrong with an artifact that is not there at all."""

MISSING_TEST = ("missing_file", "missing_id")
"""What is wrong with a selection of which the test is not there."""

_PATH = r"`?(?P<path>[\w.@-]*(?:/[\w.@-]+)*\.[A-Za-z]\w{0,9})`?"
_MAKES = re.compile(
    rf"(?<!may )(?<!not )\b(?:write|make|create|add)\s+(?:the (?:file|module)\s+)?{_PATH}", re.IGNORECASE
)
_CHANGES = re.compile(
    rf"(?<!may )(?<!not )\b(?:edit|change|correct|fix|repair)\s+(?:the (?:file|module)\s+)?{_PATH}",
    re.IGNORECASE,
)
_TELLS_TO = re.compile(
    r"(?:^|[.:;,] (?:or |and |then )?)(?:add|allow|ask|change|check|choose|close|correct|declare|drop|find|"
    r"give|grant|import|install|keep|let|look|make|fix|move|name|pass|pin|put|read|register|rename|report|run|see|"
    r"set|settle|start|take|use|wait|widen|wrap|write)\b",
    re.IGNORECASE,
)
"""A clause of a diagnosis that tells somebody to do something."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Existence of the files that a failure mentions; nothing is known of others."""

    present: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    near: Mapping[str, str] = field(default_factory=dict[str, str])
    """By missing file the existing one that was probably meant."""

    def exists(self, path: str) -> bool | None:
        """Return whether a file exists; ``None`` where that is not known."""
        return True if path in self.present else False if path in self.absent else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditScope:
    """The files that a repair may edit."""

    allowed: tuple[str, ...] | None = None
    """Globs, in which ``!`` takes files out again; ``None`` where the plan sets no limit."""
    kept: tuple[str, ...] = ()
    """Files and globs that must stay as they are, whatever is allowed: contract, data, protected files."""
    tests: bool = False
    """Tests may be changed, so that they prove no less."""

    def permits(self, path: str) -> bool:
        """Return whether a file, which need not exist yet, may be edited or written."""
        if any(matches(path, pattern) for pattern in self.kept) or path.startswith(_OWN_FOLDERS):
            return False
        if is_test_path(path) and not self.tests:
            return False
        return self.allowed is None or allowed(path, self.allowed)


class Instruction(NamedTuple):
    """One thing to do, and the files that it speaks of."""

    text: str
    makes: tuple[str, ...] = ()
    """Files that it tells to make."""
    changes: tuple[str, ...] = ()
    """Files that it tells to edit."""


def objection(instruction: Instruction, scope: EditScope, tree: Tree) -> str | None:
    """Return why an instruction must not be given; ``None`` where nothing speaks against it."""
    for path in instruction.makes:
        if tree.exists(path):
            return f"{path} exists"
        if path in tree.near:
            return f"{tree.near[path]} was probably meant"
    for path in instruction.changes:
        if tree.exists(path) is False:
            return f"{path} does not exist"
    # What a glob names is asked for by the files in it.
    for path in (*(each for each in instruction.makes if not is_glob(each)), *instruction.changes):
        if not scope.permits(path):
            return f"{path} is none of the files that may be edited"
    return None


def right_suggestion(
    failure: Failure, todo: Todo, context: FailureContext | None, protected: tuple[str, ...] = ()
) -> str | None:
    """Return what a diagnosis suggests for a todo; ``None`` where it must not be shown."""
    told = read_instruction(failure.suggestion or "")
    scope = EditScope(
        allowed=todo.allowed_files,
        kept=protected,
        tests=may_change_tests(failure, todo.allowed_files, todo.agent_role),
    )
    observed = evidence_of(failure, context.evidence) if context else ()
    return None if objection(told, scope, tree_of(context, observed)) else told.text or None


def read_instruction(text: str) -> Instruction:
    """Return a sentence that somebody else wrote with the files that it tells to make or to edit."""
    made = tuple(found["path"] for found in _MAKES.finditer(text))
    return Instruction(text, made, tuple(found["path"] for found in _CHANGES.finditer(text)))


def asks_for_work(text: str) -> bool:
    """Return whether a sentence tells somebody to do something, and does not only state what was seen."""
    return _TELLS_TO.search(text) is not None


def first_right(instructions: Iterable[Instruction], scope: EditScope, tree: Tree) -> str:
    """Return the first instruction that nothing speaks against; the last one must be such."""
    return next(each.text for each in instructions if objection(each, scope, tree) is None)


def may_change_tests(failure: Failure, patterns: tuple[str, ...] | None, role: Role | None = None) -> bool:
    """Return whether a repair may change tests: they are at fault, or all that it is about."""
    if failure.owner is Owner.TEST or failure.category in _TESTS_AT_ISSUE:
        return True
    if role is Role.TESTER and failure.owner is not Owner.PRODUCT:
        return True
    granted = [pattern for pattern in patterns or () if not pattern.startswith("!")]
    return bool(granted) and all(map(is_test_path, granted))


def tree_of(context: FailureContext | None, evidence: Iterable[Evidence] = ()) -> Tree:
    """Return what is known of the tree: what was looked up, and what the failure itself saw."""
    near = dict(context.near) if context else {}
    present = set(context.present if context else ()) | set(near.values())
    absent = set(context.absent if context else ())
    for fact in evidence:
        frames = (frame for raised in fact.exceptions for frame in raised.frames if frame.source)
        findings = fact.command.findings if fact.command else ()
        # Who was executed or complained of is there.
        present |= {frame.path for frame in frames} | {each.path for each in findings if each.path}
        if fact.nodeid:
            present.add(fact.nodeid.partition("::")[0])
        absent.update(missing_files(fact))
    return Tree(frozenset(present), frozenset(absent - present), near)


def missing_files(evidence: Evidence) -> tuple[str, ...]:
    """Return the files that were not there: an artifact, and files of tests."""
    artifact = evidence.artifact
    made = (artifact.path,) if artifact is not None and artifact.problem in ABSENT else ()
    tests = (each.text.partition("::")[0] for each in evidence.selectors if each.problem == "missing_file")
    return (*made, *tests)


def missing_module(evidence: Evidence) -> str | None:
    """Return the module that an import did not find."""
    return next((each.name for each in evidence.exceptions if each.type == "ModuleNotFoundError"), None)


def module_paths(evidence: Evidence) -> tuple[str, ...]:
    """Return where the project's module that an import did not find may stand."""
    name = missing_module(evidence) or ""
    if name.partition(".")[0] not in evidence.first_party:
        return ()
    base = name.replace(".", "/")
    return tuple(f"{start}{base}{end}" for start in ("", "src/") for end in (".py", "/__init__.py"))


def files_to_look_up(failure: Failure, evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Return the files of which somebody who may read the tree should say whether they exist."""
    named = [failure.location.path] if failure.location else []
    named += [each.path for each in failure.candidates]
    named += [test.partition("::")[0] for test in (*failure.top_failing_tests, *failure.tests[:20])]
    said = read_instruction(failure.suggestion or "")
    named += [*said.makes, *said.changes]
    for fact in evidence:
        named += missing_files(fact)
        named += [fact.contract.path, fact.contract.module_path or ""] if fact.contract else []
        named += module_paths(fact)
    return tuple(dict.fromkeys(path for path in named if path and not is_glob(path)))
