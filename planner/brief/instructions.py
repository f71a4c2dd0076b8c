"""Instructions: the one next action against a failure, checked against the tree and the permissions.

Every sentence of the planner that asks somebody to do something, and every edit of a plan that names a
file, is checked by :func:`objection`: an instruction to create a file that exists, or to edit one that may
not be edited, must not be given. What is known of the tree is passed in as a context; no file is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from planner.catalog.tables import load_table
from planner.catalog.test_paths import is_test_path
from planner.model.outcome import UNRELATED, Candidate, Failure, FailureContext, Location
from planner.model.taxonomy import Category, Owner, Role
from planner.model.verdicts import CheckKind, EvidenceKind
from planner.policy.outcomes import UNOWNED, failures_of
from planner.text.glob_patterns import allowed, is_glob, matches
from planner.text.markdown import code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from planner.model.evidence import Evidence
    from planner.model.outcome import Outcome
    from planner.model.plan import Todo

_TESTS_AT_ISSUE = frozenset((Category.FLAKY_TEST, Category.TEST_NOT_FOUND))
"""Categories in which it may be the tests that have to change."""

NOTHING = FailureContext(todo_id="")
"""The context of a failure of which nothing is known."""

_OWN_FOLDERS = (".planverify/", "diagnostics/", "/", "../")
"""Prefixes of paths that no repair may edit: records of runs, and everything outside of the root."""

ABSENT = ("missing", "no_match")
"""Problems of artifacts that do not exist."""

MISSING_TEST = ("missing_file", "missing_id")
"""Problems of selections whose test does not exist."""

_REFUSED = {"unknown_option": "does not know its option", "bad_value": "refuses its option"}
"""What pytest does with an option of the command, by the problem of the selector."""

# An ending begins with a letter, so that version numbers are no files.
_PATH = r"`?(?P<path>[\w.@-]*(?:/[\w.@-]+)*\.[A-Za-z]\w{0,9})`?"
# "you may edit x.py" and "do not edit x.py" are no instructions to edit it.
_MAKES, _CHANGES = (
    re.compile(rf"(?<!may )(?<!not )\b(?:{verbs})\s+(?:the (?:file|module)\s+)?{_PATH}", re.IGNORECASE)
    for verbs in ("write|make|create|add", "edit|change|correct|fix|repair")
)
_IMPERATIVE = re.compile(
    # The message of an exception asks for nothing: "NameError: name 'x' is not defined".
    r"(?:^|(?<!Error)[.:;,] (?:or |and |then )?)"
    r"(?:add|allow|ask|avoid|change|check|choose|close|correct|declare|drop|find|fix|give|grant|import|"
    r"install|keep|let|look|make|move|name|pass|pin|put|raise|read|register|remove|rename|replace|report|"
    r"resolve|restore|revert|run|see|set|settle|start|stop|take|use|wait|widen|wrap|write)\b"
    r"(?! \()",  # a function with its place: "drop (shop/cart.py:3) raises"
    re.IGNORECASE,
)
"""Matches a clause of a diagnosis that asks somebody to do something, by its imperative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditScope:
    """The files that a repair may edit."""

    allowed: tuple[str, ...] | None = None
    """Globs, of which those with ``!`` exclude files again; ``None`` if the plan sets no limit."""
    kept: tuple[str, ...] = ()
    """Files and globs that must not be changed, even if allowed: contract, data, protected files."""
    tests: bool = False
    """Tests may be changed, as long as they do not prove less."""

    def permits(self, path: str) -> bool:
        """Return whether a file, which need not exist yet, may be edited or written."""
        if any(matches(path, pattern) for pattern in self.kept) or path.startswith(_OWN_FOLDERS):
            return False
        if is_test_path(path) and not self.tests:
            return False
        return self.allowed is None or allowed(path, self.allowed)


class Instruction(NamedTuple):
    """One action to take, with the files that it names."""

    text: str
    makes: tuple[str, ...] = ()
    """Files to create."""
    changes: tuple[str, ...] = ()
    """Files to edit."""


def objection(instruction: Instruction, scope: EditScope, tree: FailureContext) -> str | None:
    """Return why an instruction must not be given; ``None`` if it may be given."""
    for path in instruction.makes:
        if tree.exists(path):
            return f"{path} exists"
        if path in tree.near:
            return f"{tree.near[path]} was probably meant"
    for path in instruction.changes:
        if tree.exists(path) is False:
            return f"{path} does not exist"
    # A glob names no single file, so there is no permission to check.
    for path in (*(each for each in instruction.makes if not is_glob(each)), *instruction.changes):
        if not scope.permits(path):
            return f"{path} is not one of the files that may be edited"
    return None


def right_suggestion(
    failure: Failure, worker: Todo, context: FailureContext | None, kept: tuple[str, ...] = ()
) -> str | None:
    """Return the suggestion of a diagnosis; ``None`` if there is none or it must not be given.

    ``worker`` and ``kept`` are those of :func:`scope_of`.
    """
    instruction, scope = read_instruction(failure.suggestion or ""), scope_of(failure, worker, kept)
    return None if objection(instruction, scope, context or NOTHING) else instruction.text or None


def read_instruction(text: str) -> Instruction:
    """Parse a sentence of another author: find the files that it says to create or to edit."""
    made = tuple(found["path"] for found in _MAKES.finditer(text))
    return Instruction(text, made, tuple(found["path"] for found in _CHANGES.finditer(text)))


def asks_for_work(text: str) -> bool:
    """Return whether a sentence asks somebody to do something, rather than only state an observation."""
    return _IMPERATIVE.search(text) is not None


def scope_of(failure: Failure, worker: Todo, kept: tuple[str, ...]) -> EditScope:
    """Return the files that a repair may edit: those of the todo or branch that is worked on, ``worker``.

    Files and globs in ``kept`` must not be changed, even if allowed. Tests may be changed if they are at
    fault or may be, if a tester repairs what is not the product's fault, or if nothing else is allowed.
    """
    is_testers = worker.agent_role is Role.TESTER and failure.owner is not Owner.PRODUCT
    tests = failure.owner is Owner.TEST or failure.category in _TESTS_AT_ISSUE or is_testers
    # Whoever is allowed to write tests only could otherwise change nothing.
    granted = [pattern for pattern in worker.allowed_files or () if not pattern.startswith("!")]
    tests |= bool(granted) and all(map(is_test_path, granted))
    return EditScope(allowed=worker.allowed_files, kept=kept, tests=tests)


def missing_module(evidence: Evidence) -> str | None:
    """Return the name of the module that an import did not find, or ``None``."""
    return next((each.name for each in evidence.exceptions if each.type == "ModuleNotFoundError"), None)


def module_paths(evidence: Evidence) -> tuple[str, ...]:
    """Return the possible files of a module of the project that an import did not find.

    Empty if no import failed, or if the module is not one of the project's own packages.
    """
    name = missing_module(evidence) or ""
    if name.partition(".")[0] not in evidence.first_party:
        return ()
    base = name.replace(".", "/")
    return tuple(f"{start}{base}{end}" for start in ("", "src/") for end in (".py", "/__init__.py"))


def files_to_look_up(failure: Failure, evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Return the files whose existence a caller with access to the tree should look up.

    The result of the look-up goes into the :class:`~planner.model.outcome.FailureContext`.
    """
    named = [failure.location.path] if failure.location else []
    named += [each.path for each in failure.candidates]
    named += [test.partition("::")[0] for test in (*failure.top_failing_tests, *failure.tests[:20])]
    suggestion = read_instruction(failure.suggestion or "")
    named += [*suggestion.makes, *suggestion.changes]
    for fact in evidence:
        # Others may be folders, which exist without being files.
        named += [fact.artifact.path] if fact.artifact and fact.artifact.problem in ABSENT else []
        named += [each.text.partition("::")[0] for each in fact.selectors if each.problem in MISSING_TEST]
        named += [fact.contract.path, fact.contract.module_path or ""] if fact.contract else []
        named += module_paths(fact)
    return tuple(dict.fromkeys(path for path in named if path and not is_glob(path)))


# -- meaning of a failure, and the next action against it ---------------------------------------------


_C = Category
ADVICE: Mapping[str, Mapping[str, str]] = load_table("advice", "planner.brief")
"""Meaning of each category: the rows of ``advice.toml``, which explains their keys."""

_WRITTEN_BY_HAND = (".py", ".pyi", ".js", ".ts", ".rs", ".go", ".md", ".rst", ".toml")


def is_for_a_person(category: Category) -> bool:
    """Return whether only a person can act on a category, as no edit of the project helps."""
    return category.facts.default_role is Role.HUMAN


def next_action(
    failure: Failure,
    evidence: Evidence | None,
    scope: EditScope,
    *,
    kind: CheckKind | None = None,
    tree: FailureContext = NOTHING,
) -> str:
    """Return the next action in one sentence: the best that the tree and the permissions allow.

    ``kind`` is that of the failing criterion, if known.
    """
    actions = _actions(failure, evidence, kind, tree)
    return next(each.text for each in actions if objection(each, scope, tree) is None)


def _actions(
    failure: Failure, evidence: Evidence | None, kind: CheckKind | None, tree: FailureContext
) -> Iterator[Instruction]:
    """Yield possible actions, best first; the last one names no file, so that it may always be given."""
    row = ADVICE[failure.category]
    # The first four need no certain file, so they can be given always, and what follows is not reached.
    if is_for_a_person(failure.category):
        yield Instruction(row["edit"])
    elif failure.owner in UNOWNED:
        is_environment = failure.owner is Owner.ENVIRONMENT
        yield Instruction(ADVICE[_C.ENVIRONMENT_ERROR if is_environment else _C.HARNESS_ERROR]["edit"])
    elif kind is CheckKind.MANUAL:
        yield Instruction("Before you change anything, find out why the person answered no.")
    elif kind is CheckKind.SUB_PLAN:
        yield Instruction("Repair the failed todos of the sub-plan; this one depends on them.")
    if failure.category is _C.TEST_TIMEOUT and failure.owner is Owner.PLAN:
        yield Instruction("Report that the plan has to change: its time limit is too short.")
    if failure.category is _C.TEST_NOT_FOUND:
        yield from _find_test(failure, evidence, tree)
        yield Instruction(row["edit"])
    if evidence is not None:
        # Its code could not be compared statically.
        if evidence.contract and evidence.contract.problem in ("unreadable", "unresolved"):
            yield Instruction(
                "Define it so that its interface can be read without running it, or report that it "
                "cannot be."
            )
        is_session = evidence.kind is EvidenceKind.SESSION and not evidence.exceptions
        if is_session and failure.category is _C.TEST_REGRESSION:
            yield Instruction(
                "Run the command of the criterion, and meet what it reports after the tests, such as a "
                "threshold of coverage."
            )
        yield from _restore_removed(failure, evidence, tree)
        yield from _make_missing(evidence, tree)
    yield from _edit_place(failure, evidence)


def _find_test(failure: Failure, evidence: Evidence | None, tree: FailureContext) -> Iterator[Instruction]:
    """Yield actions against a selection that finds no test, or only tests that prove nothing."""
    if evidence is None:
        return
    if evidence.kind is EvidenceKind.COMMAND and failure.owner is Owner.PLAN and failure.suggestion:
        why = re.sub("^The ", "the ", failure.suggestion)
        yield Instruction(f"Report that the plan has to change: {why}")
    # A demand names the tests that did not run to a pass, and pytest counted that as none failed.
    if evidence.vacuous in ("all_skipped", "only_xfailed") or (evidence.tests and not evidence.selectors):
        action = "Find out why the existing tests are skipped or expected to fail, and make them run"
        yield Instruction(f"{action}.", changes=test_files(failure))
        yield Instruction(f"{action}; if only a change of the tests helps, report it.")
    for option in evidence.selectors:
        if told := _REFUSED.get(option.problem):
            yield Instruction(f"Report that the plan has to change: pytest {told} {code(option.text)}.")
    found = next((each for each in evidence.selectors if each.problem in MISSING_TEST), None)
    if found is None:
        return
    path, name = found.text.partition("::")[0], code(found.text)
    if found.problem == "missing_file" and tree.exists(path):
        yield Instruction(f"{code(path)} exists now: verify again.")
    is_file = found.problem == "missing_file"
    write = f"rite {name}: it must fail while the feature is missing, and pass with it."
    # A convention names no file in the plan, so there the missing file is to be written.
    near = code(found.nearest[0]) if found.nearest and failure.check_id != "convention" else None
    yield Instruction(
        f"If {near} was meant, report that the plan has to change; else w{write}" if near else f"W{write}",
        makes=(path,) if is_file else (),
        changes=() if is_file else (path,),
    )
    yield Instruction(
        f"Report that {name} is missing: a tester has to add it{f', or {near} was meant' if near else ''}."
    )


def _make_missing(evidence: Evidence, tree: FailureContext) -> Iterator[Instruction]:
    """Yield actions against a missing artifact, metric or module."""
    artifact, metric = evidence.artifact, evidence.metric
    if artifact is not None and artifact.problem in ABSENT:
        path = code(artifact.path)
        if tree.exists(artifact.path):
            yield Instruction(f"{path} exists now: verify again.")
        if artifact.path.endswith(_WRITTEN_BY_HAND):
            yield Instruction(
                f"Write {path} in full; an empty file or a stub does not count.", makes=(artifact.path,)
            )
        near = f"; {code(artifact.nearest[0])} exists, so its path may be wrong" if artifact.nearest else ""
        yield Instruction(f"Find the code that should make {path}, and make it run{near}.")
    if metric is not None and metric.problem == "not_recorded":
        test = (evidence.nodeid or "").partition("::")[0]
        yield Instruction(
            f"Let a test of this todo call `record_property` with the name {code(metric.name)}.",
            # Without a known test, any test file: only whether tests may be changed is of interest.
            changes=(test if is_test_path(test) else "tests/x",),
        )
        yield Instruction(f"Report that no test records {code(metric.name)}: you may not change the tests.")
    paths, name = module_paths(evidence), missing_module(evidence)
    if not paths or name is None:
        return
    there = next((path for path in paths if tree.exists(path)), None)
    near = next((tree.near[path] for path in paths if path in tree.near), None)
    if there is not None:
        yield Instruction(f"{code(there)} exists now: verify again, and correct the import if that fails.")
    elif near is not None:
        yield Instruction(
            f"Correct the import of {code(name)}: there is no such module, did you mean {code(near)}?"
        )
    look = f"Look for the module {code(name)} under another name; if there is none, write"
    # One by one, as the allowlist may contain only some of the places where the module can be.
    for path in paths:
        yield Instruction(f"{look} {'it' if path == paths[0] else code(path)}.", makes=(path,))
    yield Instruction(f"Report that the module {code(name)} is missing: you may not edit that file.")


def _restore_removed(failure: Failure, evidence: Evidence, tree: FailureContext) -> Iterator[Instruction]:
    """Yield actions against a change that removed a file which is still used."""
    changed = {each.path for each in evidence.changed or ()}
    shown = failure.location.path if failure.location else None
    # An artifact, and a module that cannot be imported, may never have existed.
    gone = [path for path in (*module_paths(evidence), shown) if path in changed]
    if failure.category is _C.ARTIFACT_MISSING and evidence.artifact is None and shown:
        gone.append(shown)
    for removed in (path for path in gone if path and tree.exists(path) is False):
        name = code(removed)
        restore = f"Restore {name}, which was removed or renamed."
        text = restore if removed in changed else f"Write {name}, or restore it if it was removed."
        yield Instruction(text, makes=(removed,))
        yield Instruction(f"Report that {code(removed)} is missing: you may not restore that file.")


def _edit_place(failure: Failure, evidence: Evidence | None) -> Iterator[Instruction]:
    """Yield actions at the place of the fault, from an edit there to a report."""
    row, location = ADVICE[failure.category], fault_location(failure, evidence)
    if failure.owner is Owner.PLAN:
        yield Instruction("Report it: the plan is wrong, and a person must change it.")
    if failure.owner is Owner.TEST and failure.category is not _C.FLAKY_TEST:
        path = location.path if location else next(iter(test_files(failure)), None)
        where = place(location) if location else code(path or "")
        if path is not None:
            yield Instruction(
                f"Correct {where} without weakening it: compare it with the intent of the todo.",
                changes=(path,),
            )
        yield Instruction("Report it: a test seems to be wrong, and you may not edit it.")
    # A location in the artifact itself is no place to edit.
    made = evidence.artifact.path if evidence and evidence.artifact else None
    if location is None or location.path == made:
        yield Instruction(row["search"])
        return
    # A change elsewhere may cause a hang or a crash, but it is not where the process hangs or dies.
    is_elsewhere = failure.category in (_C.TEST_TIMEOUT, _C.TEST_CRASH) and any(
        each.hunk and "traceback" not in each.reasons and _is_at(each, location)
        for each in failure.candidates
    )
    edit = row["search"] if is_elsewhere else row["edit"].replace("{place}", place(location))
    yield Instruction(edit, changes=(location.path,))
    # The fault shows in a test that may not be edited, so it is somewhere else.
    if is_test_path(location.path) or location.path in test_files(failure):
        yield Instruction(row["search"])
    yield Instruction(
        f"Look for the cause in the files that you may edit; {place(location)} is not one of them: "
        "report it if it must change."
    )


def _is_at(candidate: Candidate, location: Location) -> bool:
    return (candidate.path, candidate.function) == (location.path, location.function)


def fault_location(failure: Failure, evidence: Evidence | None) -> Location | None:
    """Return the location of the fault, or ``None``.

    It is the likeliest candidate of the diagnosis; without candidates, for a product's failure in a test,
    the only function under test; else the location of the failure. If the machine is at fault or a person
    must act, the candidates are not at fault, so it is the location, too.
    """
    location = failure.location
    places = tuple(each for each in failure.candidates if each.hunk is None or each.score > UNRELATED)
    is_products = failure.owner is Owner.PRODUCT
    if failure.owner in UNOWNED or is_for_a_person(failure.category):
        return location
    if places:
        # The place where a name or parameter is missing is none of the candidates.
        # A location without a line is known less well than a candidate in the same file.
        at = (
            (location.path, location.function if location.line else places[0].function)
            if location
            else None
        )
        is_other = at != (places[0].path, places[0].function)
        if location and is_other and is_products and not is_test_path(location.path):
            return location
        # If a test is at fault, the product that it called is not.
        if failure.owner is Owner.TEST:
            places = tuple(each for each in (*places, location) if each and is_test_path(each.path))
    elif location is not None and is_test_path(location.path) and is_products and evidence:
        places = evidence.subjects if len(evidence.subjects) == 1 else ()
    first = next(iter(places), location)
    return first and Location(path=first.path, line=first.line, function=first.function)


def test_files(failure: Failure) -> tuple[str, ...]:
    """Return the files of the failing tests."""
    names = (*failure.top_failing_tests, *failure.tests)
    return tuple(dict.fromkeys(name.partition("::")[0] for name in names))


def place(location: Location) -> str:
    """Return a location as Markdown: ```compute_rsi` (`indicators/rsi.py:11`)``."""
    where = code(location.shown)
    if location.function and location.function != "<module>":
        return f"{code(location.function)} ({where})"
    return where


def deciding_failure(outcome: Outcome) -> Failure:
    """Return the failure that decides the route.

    For an outcome without failures, it is one of unknown category, from its first failing check.
    """
    for failure in failures_of(outcome):
        return failure
    # Outcomes of other programs may have checks alone.
    red = next((check for check in outcome.checks if check.counts_as.is_red), None)
    return Failure(
        category=Category.UNKNOWN,
        check_id=red.id if red else None,
        stack_trace_head=red.reason if red else None,
        top_failing_tests=tuple(each.nodeid for each in red.tests if each.outcome.is_red) if red else (),
    )
