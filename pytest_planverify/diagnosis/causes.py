"""Root causes: groups of diagnosed failures, in the order in which to repair them.

Failures with equal signatures, or with a common mark, have one cause, unless only some of them are from
before the work. Marks are, for example, a module that cannot be imported, a file that is missing or does
not parse, a raising fixture, or the product function that raised or returned the refused value. Causes that
keep tests from running come first, then findings of tests (:class:`Stage`); within a stage new failures
come before old ones, then the depth in the dependencies, the number of tests that show the cause and the
order of todos decide. The result does not depend on the order of the given failures.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from planner.model.outcome import Cause, CauseTodo
from planner.model.taxonomy import Category, Family, Repeatability
from planner.model.verdicts import EvidenceKind, Phase, Side
from planner.text.python_text import callee_of
from pytest_planverify.diagnosis.case import Case, is_class
from pytest_planverify.diagnosis.known import CODES
from pytest_planverify.diagnosis.messages import origins_of_values
from pytest_planverify.diagnosis.tool_output import CANNOT_IMPORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planner.model.evidence import Evidence, ExceptionFact, Finding, Frame
    from planner.model.outcome import Diagnosis

__all__ = ["SeenFailure", "TodoKey", "find_causes", "grouping"]

TodoKey: TypeAlias = tuple[str | None, str]
"""Plan id and todo id; a plan id of ``None`` is the top plan."""

TOP_TESTS = 10
"""Limit of tests that a cause names."""

_ASSERTIONS = ("AssertionError", "Failed", "_pytest.outcomes.Failed")
"""Assertion errors; those raised in the same test helper have no common cause for that reason."""
_UNUSABLE = ("AttributeError", "LookupError", "TypeError", "ValueError")
"""Errors of a test that uses a value of an unexpected kind."""


class Mark(NamedTuple):
    """A feature that failures with one cause share: its kind (``what``) and its ``name``."""

    what: str
    name: tuple[str, ...]


def _marks_of(evidence: Evidence, diagnosis: Diagnosis) -> Iterator[Mark]:
    """Yield the marks by which a failure may share its cause with failures of other signatures."""
    case = Case.of(evidence)
    yield from _marks_of_error(case) if case.has_error else _marks_of_command(case)
    absent = {_posix_path(path) for path in _absent_files(evidence)}
    # A failure for several missing files would join the causes of those for one of them each.
    if len(absent) == 1:
        yield Mark("absent", (absent.pop(),))
    first = next(iter(diagnosis.candidates), None)
    hunk = first.hunk if first is not None else None
    if first is None or hunk is None or first.function is None:
        return
    # Purely added code broke nothing that worked before: failures in it need not have one cause.
    is_changed = hunk.side is Side.PRODUCT and hunk.removed > 0
    if is_changed and diagnosis.category in (Category.TEST_REGRESSION, Category.TEST_TIMEOUT):
        yield Mark("changed", (_posix_path(first.path), first.function))


def _absent_files(evidence: Evidence) -> Iterator[str]:
    """Yield the files that a criterion needs and that do not exist."""
    if evidence.artifact is not None and evidence.artifact.problem == "missing":
        yield evidence.artifact.path
    for selector in evidence.selectors:
        if selector.problem == "missing_file":
            yield selector.text.partition("::")[0]
    for finding in evidence.command.findings if evidence.command is not None else ():
        if finding.path and finding.message == "No such file or directory":
            yield finding.path


def _marks_of_command(case: Case) -> Iterator[Mark]:
    """Yield the mark of a tool that reports one unparsable file, and nothing else."""
    command = case.evidence.command
    findings = command.findings if command is not None else ()
    paths = {_posix_path(finding.path) for finding in findings if finding.path}
    # With findings in other files the syntax error would not explain the whole failure.
    if len(paths) == 1 and any(map(_is_syntax, findings)):
        yield Mark("syntax", (paths.pop(),))


def _is_syntax(finding: Finding) -> bool:
    """Return whether a tool reports that it could not parse the file."""
    return (
        finding.code in CODES["syntax"]
        or finding.code == "E902"
        or finding.message.startswith(("SyntaxError:", "Syntax error"))
    )


def _marks_of_error(case: Case) -> Iterator[Mark]:
    """Yield the marks of an exception: missing names, mismatched calls, and the function at fault."""
    error, frame = case.error, case.raised_at
    if case.is_error("ModuleNotFoundError") and error.name:
        yield Mark("module", (error.name,))
    elif error.name and (found := CANNOT_IMPORT.match(error.message)):
        yield Mark("name", (error.name, found["what"]))
    elif case.is_error("NameError") and error.name and frame and frame.module:
        yield Mark("name", (frame.module, error.name))
    elif case.is_error("AttributeError") and error.name and error.object_type:
        owner = error.object_type.removeprefix("module ")
        if owner != error.object_type or error.object_side in (Side.PRODUCT, Side.TEST):
            yield Mark("name", (owner, error.name))
    elif case.is_error("_pytest.fixtures.FixtureLookupError") and error.name:
        yield Mark("fixture", (error.name,))
    elif case.is_error("SyntaxError") and error.path and not error.path.startswith("<"):
        yield Mark("syntax", (_posix_path(error.path),))
    elif case.is_error("doctest.DocTestFailure") and error.path:
        yield Mark("example", (_posix_path(error.path), str(error.line)))
    callee = callee_of(error.message) if error.qualified == "builtins.TypeError" else None
    if callee:
        yield Mark("call", (callee,))
    if frame is not None:
        yield from _marks_of_place(case, frame)
        if frame.side is Side.TEST and case.is_error(*_ASSERTIONS, *_UNUSABLE):
            # Missing names and mismatched calls have marks of their own.
            lacks = error.object_side in (Side.PRODUCT, Side.TEST) or callee_of(error.message)
            origin = None if lacks else _origin_of_value(case.evidence, error)
            if origin is not None:
                yield Mark("value", origin)


def _marks_of_place(case: Case, frame: Frame) -> Iterator[Mark]:
    """Yield the marks of the raising function: of the product, of a fixture, or of a test helper."""
    error, place = case.error, (frame.path, frame.function)
    if frame.side is Side.PRODUCT:
        others = {(each.path, each.function) for each in case.frames if each.side is Side.PRODUCT} - {place}
        # Called directly by a test: other tests may see the same fault as a wrong value instead.
        if case.evidence.phase is Phase.CALL and not others:
            yield Mark("value", (_posix_path(frame.path), frame.function))
    if case.is_error("SyntaxError", "ImportError"):
        return
    if frame.side is Side.PRODUCT:
        yield Mark("raised", (*place, error.qualified))
    elif case.evidence.phase in (Phase.SETUP, Phase.TEARDOWN):
        yield Mark("fixture", place)
    else:
        # A helper that several tests call raises; a test function itself is no common mark.
        first = next(each for each in case.frames if each.side is Side.TEST)
        if (first.path, first.function) != place and not case.is_error(*_ASSERTIONS):
            yield Mark("raised", (*place, error.qualified))


def _origin_of_value(evidence: Evidence, error: ExceptionFact) -> tuple[str, str] | None:
    """Return path and qualified name of the only product function that can have returned the value.

    ``None`` if there are several, or if the value comes from a call that matches no product function.
    """
    subjects = list(evidence.subjects)
    if not subjects:
        return None
    shown = [call.partition("(")[0] for _, call in origins_of_values(error)]
    for name in shown:
        found = {origin for subject in subjects if (origin := _as_subject(name, subject))}
        if len(found) == 1:
            return found.pop()
    if shown or len(subjects) > 1 or is_class(subjects[0]):
        return None
    return _posix_path(subjects[0].path), subjects[0].function


def _as_subject(name: str, subject: Frame) -> tuple[str, str] | None:
    """Return path and qualified name of the function that a called name refers to.

    ``None`` unless the subject is that function or may be its class. A method called on a variable, whose
    name starts with a lower-case letter, may belong to any class.
    """
    holder, _, last = name.rpartition(".")
    bare = subject.function.rpartition(".")[2]
    if not is_class(subject):
        return (_posix_path(subject.path), subject.function) if bare == last else None
    kind = holder.rpartition(".")[2]
    may_be_method = bool(holder) and (kind == bare or not kind[:1].isupper())
    return (_posix_path(subject.path), f"{subject.function}.{last}") if may_be_method else None


def _posix_path(path: str) -> str:
    """Return a path as in evidence: with forward slashes, without a leading ``./``."""
    return path.replace("\\", "/").removeprefix("./")


class TodoOrder:
    """Order of a run's todos. Unknown dependencies are ignored, and all of them if there is a cycle."""

    def __init__(self, depends: Mapping[TodoKey, Sequence[TodoKey]], seen: Iterable[TodoKey] = ()) -> None:
        """Create the order; ``depends`` maps the todos, in plan order, to their dependencies.

        Todos that only ``seen`` contains follow, sorted by name.
        """
        known = (*depends, *sorted({each for each in seen if each not in depends}, key=_by_name))
        self.place = {key: place for place, key in enumerate(known)}
        """Position in the plan, from 0."""
        self.depth = dict.fromkeys(known, 0)
        """Length of the longest chain of dependencies below a todo; 0 without dependencies."""
        # Plans with cycles are refused when they are loaded, but the causes of old runs are still shown.
        with suppress(CycleError):
            for todo in tuple(TopologicalSorter(depends).static_order()):
                above = (self.depth[each] + 1 for each in depends.get(todo, ()) if each in self.depth)
                if todo in self.depth:
                    self.depth[todo] = max(above, default=0)


def _by_name(todo: TodoKey) -> tuple[str, str]:
    return todo[0] or "", todo[1]


@dataclass(frozen=True, slots=True)
class SeenFailure:
    """A failure with its diagnosis and its todo."""

    todo: TodoKey
    evidence: Evidence
    diagnosis: Diagnosis
    root: str = ""
    """Root that its paths are relative to: equal paths below different roots are different files."""
    is_old: bool = False
    """It is from before the work on its todo: what the work did cannot be its cause."""

    @property
    def shown_by(self) -> tuple[str, ...]:
        """Node ids of the tests that show the failure, or of the file that could not be collected."""
        evidence = self.evidence
        return evidence.tests or ((evidence.nodeid,) if evidence.nodeid else ())


class Stage(IntEnum):
    """Stages of repair, most urgent first."""

    STOPS = 0
    """Sandbox violation or exceeded budget."""
    SURROUNDS = 1
    """Problem of the environment that affects most of the run's failures."""
    UNLOADED = 2
    """Code that could not be imported or parsed."""
    UNPREPARED = 3
    """Failed setup."""
    FOUND = 4
    """Findings of tests."""
    FOLLOWS = 5
    """A missing or wrong artifact or metric, which other work should produce."""
    REMARKED = 6
    """Findings of linters."""
    UNSTEADY = 7
    """Flaky failures."""


_BECAUSE = {
    Stage.STOPS: "a person must decide before work continues",
    Stage.SURROUNDS: "no change of the code repairs it",
    Stage.UNLOADED: "its importers cannot be loaded, which hides their other failures",
    Stage.UNPREPARED: "the tests that use this set-up did not run",
    Stage.FOLLOWS: "other work should produce it",
    Stage.REMARKED: "a remark about the code, which prevents no test from running",
    Stage.UNSTEADY: "not reproducible, so reproducible causes come first",
}
"""Explanation of a stage's position; findings of tests are ordered individually."""


@dataclass
class Group:
    """The failures of one cause."""

    members: list[SeenFailure] = field(default_factory=list["SeenFailure"])
    stage: Stage = Stage.FOUND
    depth: int = 0
    """Depth of the earliest todo that shows it."""

    @cached_property
    def clearest(self) -> SeenFailure:
        """The representative failure: of the most severe family, with the highest confidence.

        The further keys only make the choice independent of the members' order.
        """
        return min(
            self.members,
            key=lambda each: (
                each.diagnosis.category.facts.family.severity,
                each.diagnosis.category is Category.TEST_TIMEOUT,  # slow to repeat, and vague
                -each.diagnosis.confidence,
                each.diagnosis.signature,
                _by_name(each.todo),
                each.evidence.check_id,
                each.evidence.nodeid or "",
                each.evidence.headline,
                each.diagnosis.category.value,
                each.diagnosis.rule,
            ),
        )

    @property
    def is_old(self) -> bool:
        """Its failures are from before the work."""
        return self.members[0].is_old

    @cached_property
    def signatures(self) -> tuple[str, ...]:
        """Distinct signatures: the clearest failure's first, the others sorted."""
        first = self.clearest.diagnosis.signature
        return (first, *sorted({each.diagnosis.signature for each in self.members} - {first}))

    @cached_property
    def todos(self) -> frozenset[TodoKey]:
        """The todos in which the cause shows."""
        return frozenset(each.todo for each in self.members)

    @cached_property
    def tests(self) -> dict[tuple[str, str], TodoKey]:
        """Root and name of each test or file that shows the cause, with the first todo by name."""
        # In reverse order, so that the first todo's entry is the one that remains.
        members = sorted(self.members, key=lambda each: _by_name(each.todo), reverse=True)
        return {(each.root, nodeid): each.todo for each in members for nodeid in each.shown_by}

    @cached_property
    def consequences(self) -> int:
        """Number of tests and files that show the cause; a criterion without tests counts as one."""
        without = {(each.todo, each.evidence.check_id) for each in self.members if not each.shown_by}
        return len(self.tests) + len(without)


_Key: TypeAlias = tuple[bool, str]
"""Whether a failure is from before the work, and its signature."""


def find_causes(
    seen: Sequence[SeenFailure], depends: Mapping[TodoKey, Sequence[TodoKey]]
) -> tuple[Cause, ...]:
    """Return the root causes of a run's failures, most urgent first.

    ``depends`` maps every todo of the run, in plan order, to its dependencies. The result is independent of
    the order of ``seen``.
    """
    order = TodoOrder(depends, (each.todo for each in seen))
    groups = _ordered(seen, order)
    return tuple(_cause(place, groups, order) for place in range(len(groups)))


def grouping(seen: Sequence[SeenFailure], depends: Mapping[TodoKey, Sequence[TodoKey]]) -> list[list[int]]:
    """Return indices into ``seen`` by cause, most urgent cause first."""
    order = TodoOrder(depends, (each.todo for each in seen))
    place = {id(each): number for number, each in enumerate(seen)}
    return [sorted(place[id(each)] for each in group.members) for group in _ordered(seen, order)]


def _grouped(seen: Sequence[SeenFailure]) -> list[Group]:
    """Return one group per cause: failures of one signature, joined with those that share a mark.

    A union-find over signatures; the smallest signature represents a group, whatever the order of ``seen``.
    Failures from before the work have causes of their own.
    """
    holder: dict[tuple[str, Mark, bool], _Key] = {}  # first signature by root, mark and age
    above: dict[_Key, _Key] = {}

    def top(key: _Key) -> _Key:
        """Return the representative of a signature's group."""
        while (higher := above.get(key)) is not None:
            key = higher
        return key

    for each in seen:
        key = each.is_old, each.diagnosis.signature
        for mark in _marks_of(each.evidence, each.diagnosis):
            first = holder.setdefault((each.root, mark, each.is_old), key)
            if first != key:
                low, high = sorted((top(first), top(key)))
                if low != high:
                    above[high] = low
    groups: dict[_Key, Group] = {}
    for each in seen:
        groups.setdefault(top((each.is_old, each.diagnosis.signature)), Group()).members.append(each)
    return list(groups.values())


def _ordered(seen: Sequence[SeenFailure], order: TodoOrder) -> list[Group]:
    """Return the groups, most urgent first, with stage and depth set."""
    groups = _grouped(seen)
    failing = len({each.todo for each in seen})
    consequences = sum(group.consequences for group in groups)
    for group in groups:
        group.stage = _stage_of(group, failing, consequences)
        group.depth = min(order.depth[todo] for todo in group.todos)
    groups.sort(
        key=lambda group: (
            group.stage,
            group.is_old,
            group.depth,
            -group.consequences,
            min(order.place[todo] for todo in group.todos),
            group.signatures[0],
        )
    )
    return groups


def _stage_of(group: Group, failing: int, consequences: int) -> Stage:
    """Return the stage of a group, given the number of failing todos and of all consequences."""
    category, members = group.clearest.diagnosis.category, group.members
    family = category.facts.family
    if family in (Family.SANDBOX, Family.BUDGET):
        return Stage.STOPS
    is_wide = len(group.todos) == failing or 2 * group.consequences >= consequences
    if family is Family.ENVIRONMENT and is_wide:
        return Stage.SURROUNDS
    if all(each.diagnosis.repeatability is Repeatability.FLAKY for each in members):
        return Stage.UNSTEADY
    is_unloaded = category in (Category.COMPILATION_ERROR, Category.IMPORT_ERROR)
    if is_unloaded or any(_was_loading(each.evidence) for each in members):
        return Stage.UNLOADED
    if any(each.evidence.phase is Phase.SETUP for each in members):
        return Stage.UNPREPARED
    if category is Category.LINT_ERROR:
        return Stage.REMARKED
    follows = all(each.evidence.artifact or each.evidence.metric for each in members)
    return Stage.FOLLOWS if follows else Stage.FOUND


def _was_loading(evidence: Evidence) -> bool:
    """Return whether a failure occurred before any test could run."""
    is_kind = evidence.kind in (EvidenceKind.COLLECTION, EvidenceKind.SESSION)
    return is_kind and bool(evidence.exceptions or evidence.phase is Phase.COLLECT)


def _cause(place: int, groups: Sequence[Group], order: TodoOrder) -> Cause:
    """Return the cause at a position of the ordered groups."""
    group = groups[place]
    clearest = group.clearest
    by_plan = sorted(group.tests, key=lambda key: (order.place[group.tests[key]], key[1]))
    pairs = {(each.todo, nodeid) for each in group.members for nodeid in each.shown_by}
    tests_of = Counter(todo for todo, nodeid in pairs if "::" in nodeid)
    tests = sum("::" in nodeid for _, nodeid in group.tests)
    return Cause(
        rank=place + 1,
        signatures=group.signatures,
        category=clearest.diagnosis.category,
        owner=clearest.diagnosis.owner,
        confidence=clearest.diagnosis.confidence,
        headline=clearest.evidence.headline,
        location=clearest.diagnosis.location,
        todos=tuple(
            CauseTodo(todo_id=todo[1], plan=todo[0], tests=tests_of[todo])
            for todo in sorted(group.todos, key=lambda todo: order.place[todo])
        ),
        tests=tests,
        files=len(group.tests) - tests,
        top_tests=tuple(dict.fromkeys(nodeid for _, nodeid in by_plan))[:TOP_TESTS],
        because=_because(group, next(iter(groups[place + 1 :]), None), is_only=len(groups) == 1),
    )


def _because(group: Group, following: Group | None, *, is_only: bool) -> str:
    """Return why a group comes at its place; ``following`` is the next group in the order."""
    if is_only:
        return "every failure shows it"
    if group.stage in _BECAUSE:
        return _BECAUSE[group.stage]
    if group.is_old:
        return "it failed before the work began"
    if following is None or following.stage is not group.stage or following.is_old:
        return "independent of the others"
    if following.depth > group.depth:
        return "in an earlier wave than the next"
    if following.consequences < group.consequences:
        return "explains more failures than the next"
    return "before the next in the plan"
