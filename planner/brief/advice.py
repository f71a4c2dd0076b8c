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
    """One row of the table."""

    title: str
    """Says what is the matter, and completes "Repair t1: …"."""
    edit: str
    """What to do at ``{place}``, a place that may be edited."""
    search: str
    """What to do where no such place is known."""


def _everywhere(title: str, action: str) -> Advice:
    """Return a row whose action does not depend on the place."""
    return Advice(title, action, action)


_C = Category
ADVICE: Mapping[Category, Advice] = {
    _C.TEST_REGRESSION: Advice(
        "a test finds a wrong result",
        "Correct {place}, or what it calls, so that the test gets what it expects.",
        "Follow the failing test into the code, and correct the first step that gives a wrong value.",
    ),
    _C.TEST_TIMEOUT: Advice(
        "a test does not end in time",
        "Find the loop or the wait in {place} that does not end, and make it end; keep the limit.",
        "Find the loop or the wait without an end that the test reaches, and make it end; keep the limit.",
    ),
    _C.FLAKY_TEST: Advice(
        "a test is now green, now red",
        "Find what differs between runs in {place} (time, randomness, order, shared state), and fix it; "
        "add no rerun, skip or longer sleep.",
        "Find what differs between runs (time, randomness, order, shared state), and fix it; add no rerun, "
        "skip or longer sleep.",
    ),
    _C.TEST_CRASH: Advice(
        "the process dies while a test runs",
        "Find what ends the process in {place} (native code, endless recursion, os._exit, memory), and "
        "correct it.",
        "Run the test alone with `python -X faulthandler -m pytest`, and correct the call that ends the "
        "process.",
    ),
    _C.TEST_NOT_FOUND: _everywhere(
        "the criterion's test is not there",
        "Compare what the command selects with the tests that exist, and make it find one that can fail.",
    ),
    _C.COMPILATION_ERROR: Advice(
        "the code cannot be compiled",
        "Correct the syntax at {place}; an unclosed bracket or quote may begin above it.",
        "Find the file that does not compile in the message, and correct its syntax.",
    ),
    _C.TYPE_ERROR: Advice(
        "a value has the wrong type",
        "Find who gives {place} a value of the wrong kind, and correct it; silence no checker.",
        "Find where the value of the wrong kind is made, and correct it there; silence no checker.",
    ),
    _C.LINT_ERROR: Advice(
        "the linter complains",
        "Fix what the linter names, from {place} on; silence no rule, and change no behaviour.",
        "Fix what the linter names; silence no rule, and change no behaviour.",
    ),
    _C.IMPORT_ERROR: Advice(
        "something cannot be imported",
        "Correct the import at {place}, or declare the package that it needs; vendor and stub nothing.",
        "Correct the import, or declare the package that it needs; vendor and stub nothing.",
    ),
    _C.SPEC_MISMATCH: Advice(
        "the code's interface is not the one that was promised",
        "Bring {place} to the interface that the tests and the contract promise, and then its callers.",
        "Find the definition that the tests or the contract promise, and bring the code to it.",
    ),
    _C.ARTIFACT_MISSING: Advice(
        "a file that should have been made is missing or wrong",
        "Correct the code at {place} that makes the file, and run it.",
        "Find the code that should make the file, correct it and run it.",
    ),
    _C.METRIC_UNMET: Advice(
        "a measured number is not good enough",
        "Improve what the number measures, from {place} on; record nothing else and measure no less.",
        "Improve what the number measures; record nothing else and measure no less.",
    ),
    _C.SANDBOX_VIOLATION: _everywhere(
        "the code reached for something it may not touch",
        "Change nothing: everything waits until a person has looked at what was attempted.",
    ),
    _C.HYGIENE_VIOLATION: _everywhere(
        "what judges the work was changed",
        "Change nothing: everything waits until a person has looked at what was changed.",
    ),
    _C.ALLOWLIST_VIOLATION: _everywhere(
        "a file was changed that the todo may not change",
        "Change nothing: a person decides whether the list or the change is wrong.",
    ),
    _C.BUDGET_EXCEEDED: _everywhere(
        "the budget is used up",
        "Change nothing: a person decides whether there is more to spend, and on what.",
    ),
    _C.ENVIRONMENT_ERROR: _everywhere(
        "the environment is not ready",
        "Change no code: have what the message names installed, started or freed, and verify again.",
    ),
    _C.HARNESS_ERROR: _everywhere(
        "the verifier itself failed",
        "Change no code: verify again, and report the message if it comes back.",
    ),
    _C.UNKNOWN: Advice(
        "it fails, and no rule could say why",
        "Run the check alone, make its input smaller until the cause shows, and begin at {place}.",
        "Run the check alone, and make its input smaller until the cause shows.",
    ),
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
        if failure.category is _C.LINT_ERROR and _is_wanted_export(evidence):
            yield Instruction(
                "Say that the re-exports are meant (name them in `__all__`, or write `import x as x`); if "
                "the package must stay as it is, the criterion is wrong: report that to whoever wrote the "
                "plan."
            )
        yield from _make_missing(evidence, tree)
    yield from _edit_place(failure, evidence)


def _is_wanted_export(evidence: Evidence) -> bool:
    """Return whether a linter complains only of imports in an ``__init__.py`` that it calls unused."""
    found = () if evidence.command is None else evidence.command.findings
    return bool(found) and all(
        each.code == "F401" and (each.path or "").rpartition("/")[2] == "__init__.py" for each in found
    )


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
                f"Compare {where} with what the todo is for, and correct the test so that it proves no "
                "less.",
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
