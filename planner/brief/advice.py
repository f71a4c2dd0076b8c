"""What a failure means in plain words, and the one next action against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from planner.brief.instructions import (
    Instruction,
    Tree,
    first_right,
    missing_module,
    module_paths,
)
from planner.brief.quoting import code, listed
from planner.catalog.tables import load_table
from planner.catalog.test_paths import is_test_path
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import CheckKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from planner.brief.instructions import EditScope
    from planner.model.evidence import Evidence
    from planner.model.outcome import Failure


class Advice(NamedTuple):
    """One row of ``advice.toml``, which tells what the fields mean."""

    title: str
    edit: str
    search: str


_C = Category
ADVICE: Mapping[Category, Advice] = {
    Category(name): Advice(row["title"], row["edit"], row.get("search", row["edit"]))
    for name, row in load_table("advice", "planner.brief").items()
}

FOR_A_PERSON = frozenset(
    (
        _C.SANDBOX_VIOLATION,
        _C.HYGIENE_VIOLATION,
        _C.ALLOWLIST_VIOLATION,
        _C.BUDGET_EXCEEDED,
        _C.ENVIRONMENT_ERROR,
        _C.HARNESS_ERROR,
    )
)
"""Categories against which no edit of the project helps."""

_ABSENT = ("missing", "no_match")
_UNDECIDED = ("unreadable", "unresolved")
_WRITTEN_BY_HAND = (".py", ".pyi", ".js", ".ts", ".rs", ".go", ".md", ".rst", ".toml")
_MISSING_TESTS = ("missing_file", "missing_id")


def acting_role(failure: Failure, role: Role | None = None) -> Role:
    """Return who should act: the role given, else the one that the outcome names, else the default."""
    if failure.category in FOR_A_PERSON:
        return Role.HUMAN
    return role or failure.target_agent or failure.category.facts.default_role


def next_action(
    failure: Failure,
    evidence: Evidence | None,
    scope: EditScope,
    *,
    kind: CheckKind | None = None,
    tree: Tree | None = None,
) -> str:
    """Return the next action in one sentence, the first that is right; ``kind`` is the criterion's."""
    tree = tree or Tree()
    return first_right(_actions(failure, evidence, kind, tree), scope, tree)


def _actions(
    failure: Failure, evidence: Evidence | None, kind: CheckKind | None, tree: Tree
) -> Iterator[Instruction]:
    """Yield what may be done, the best first; the last one asks for no edit of a certain file."""
    row = ADVICE[failure.category]
    if failure.category in FOR_A_PERSON:
        yield Instruction(row.edit)
    elif failure.owner in (Owner.ENVIRONMENT, Owner.HARNESS):
        is_environment = failure.owner is Owner.ENVIRONMENT
        yield Instruction(ADVICE[_C.ENVIRONMENT_ERROR if is_environment else _C.HARNESS_ERROR].edit)
    elif kind is CheckKind.MANUAL:
        yield Instruction("Find out what the person saw who answered no, before you change anything.")
    elif kind is CheckKind.SUB_PLAN:
        yield Instruction("Repair the failed todos of the plan below; this one follows from them.")
    if failure.category is _C.TEST_NOT_FOUND:
        yield from _find_test(failure, evidence, tree)
        yield Instruction(row.search)
    if evidence is not None:
        if evidence.contract and evidence.contract.problem in _UNDECIDED:
            yield Instruction(
                "Define it so that its interface can be read without running it, or report that it "
                "cannot be."
            )
        yield from _make_missing(evidence, tree)
    yield from _edit_place(failure, evidence)


def _find_test(failure: Failure, evidence: Evidence | None, tree: Tree) -> Iterator[Instruction]:
    if evidence is None:
        return
    if evidence.vacuous in ("all_skipped", "only_xfailed"):
        action = "Find why the tests that exist are skipped or expected to fail, and have them run"
        yield Instruction(f"{action}.", changes=test_files(failure))
        yield Instruction(f"{action}; if only an edit of the tests helps, report it.")
    found = next((each for each in evidence.selectors if each.problem in _MISSING_TESTS), None)
    if found is None:
        return
    path, name = found.text.partition("::")[0], code(found.text)
    if found.problem == "missing_file" and tree.exists(path):
        yield Instruction(f"{code(path)} exists by now: verify again.")
    if found.nearest and failure.check_id != "convention":
        near = code(found.nearest[0])
        yield Instruction(f"Report that {name} does not exist and {near} does: the plan has to change.")
    is_file = found.problem == "missing_file"
    yield Instruction(
        f"Write {name}: it must fail while the feature is missing, and pass with it.",
        makes=(path,) if is_file else (),
        changes=() if is_file else (path,),
    )
    yield Instruction(f"Report that {name} is missing: it is not among the files that you may edit.")


def _make_missing(evidence: Evidence, tree: Tree) -> Iterator[Instruction]:
    """Yield what to do about a file, a module or a number that is not there."""
    artifact, metric = evidence.artifact, evidence.metric
    if artifact is not None and artifact.problem in _ABSENT:
        path = code(artifact.path)
        if tree.exists(artifact.path):
            yield Instruction(f"{path} exists by now: verify again.")
        if artifact.path.endswith(_WRITTEN_BY_HAND):
            yield Instruction(
                f"Write {path} in full; an empty file or a stub is no result.", makes=(artifact.path,)
            )
        near = f"; {code(artifact.nearest[0])} exists, so its path may be wrong" if artifact.nearest else ""
        yield Instruction(f"Find what should make {path}, and have it made{near}.")
    if metric is not None and metric.problem == "not_recorded":
        test = ((evidence.nodeid or "tests/").partition("::")[0],)
        yield Instruction(
            f"Have a test of this todo call `record_property` with the name {code(metric.name)}.",
            changes=tuple(path if is_test_path(path) else "tests/x" for path in test),
        )
        yield Instruction(
            f"Report that no test records {code(metric.name)}: the tests are not yours to change."
        )
    paths, name = module_paths(evidence), missing_module(evidence)
    if not paths or name is None:
        return
    there = next((path for path in paths if tree.exists(path)), None)
    near = next((tree.near[path] for path in paths if path in tree.near), None)
    if there is not None:
        yield Instruction(
            f"{code(there)} exists by now: verify again, and correct the import if that fails."
        )
    elif near is not None:
        yield Instruction(
            f"Correct the import of {code(name)}: there is no such module, did you mean {code(near)}?"
        )
    look = f"Look for the module {code(name)} under another name; where there is none, write"
    for path in paths:
        yield Instruction(f"{look} {'it' if path == paths[0] else code(path)}.", makes=(path,))
    yield Instruction(
        f"Report that the module {code(name)} is missing: it is not among the files that you may edit."
    )


def _edit_place(failure: Failure, evidence: Evidence | None) -> Iterator[Instruction]:
    row, location = ADVICE[failure.category], fault_location(failure, evidence)
    if failure.owner is Owner.PLAN:
        yield Instruction("Report it: the plan asks for something that it should not; a person changes it.")
    if failure.owner is Owner.TEST and failure.category is not _C.FLAKY_TEST:
        path = location.path if location else next(iter(test_files(failure)), None)
        where = place(location) if location else code(path or "")
        if path is not None:
            yield Instruction(
                f"Correct {where} so that it proves no less: compare it with what the todo is for.",
                changes=(path,),
            )
        yield Instruction("Report it: a test seems to be wrong, and you may not edit it.")
    made = evidence.artifact.path if evidence and evidence.artifact else None
    if location is None or location.path == made:
        yield Instruction(row.search)
        return
    yield Instruction(row.edit.replace("{place}", place(location)), changes=(location.path,))
    if is_test_path(location.path) or location.path in test_files(failure):
        yield Instruction(row.search)
    yield Instruction(
        f"Look for the cause in the files that you may edit; {place(location)} is none of them: report it "
        "if it must change."
    )


def fault_location(failure: Failure, evidence: Evidence | None) -> Location | None:
    """Return where the fault is: the likeliest function; without one, what the test or its line names."""
    if failure.candidates:
        first = failure.candidates[0]
        if failure.owner is Owner.TEST:  # not what the broken fixture or test has called
            first = next((each for each in failure.candidates if is_test_path(each.path)), first)
        return Location(path=first.path, line=first.line, function=first.function)
    location, subjects = failure.location, evidence.subjects if evidence else ()
    in_test = location is not None and is_test_path(location.path)
    if in_test and failure.owner is Owner.PRODUCT and len(subjects) == 1:
        return Location(path=subjects[0].path, line=subjects[0].line, function=subjects[0].function)
    return location


def test_files(failure: Failure) -> tuple[str, ...]:
    """Return the files of the failing tests."""
    names = (*failure.top_failing_tests, *failure.tests)
    return tuple(dict.fromkeys(name.partition("::")[0] for name in names))


def place(location: Location) -> str:
    """Return ```compute_rsi` (`indicators/rsi.py:11`)``."""
    where = code(f"{location.path}:{location.line}" if location.line else location.path)
    if location.function and location.function != "<module>":
        return f"{code(location.function)} ({where})"
    return where


def describe_scope(failure: Failure, scope: EditScope) -> tuple[str, str]:
    """Return what may be edited and what must stay as it is."""
    if failure.category in FOR_A_PERSON or failure.owner in (Owner.ENVIRONMENT, Owner.HARNESS):
        edit = "nothing"
    elif scope.allowed is None:
        edit = "what the repair needs, and as little as possible"
    else:
        edit = listed(scope.allowed, 8) if scope.allowed else "nothing"
    tests = "any test so that it proves less" if scope.tests else "the tests, their fixtures and conftests"
    kept = f", {listed(scope.kept, 8)}" if scope.kept else ""
    return edit, f"{tests}{kept}, the plan, `.planverify/`, `diagnostics/`"
