"""Rules for commands that selected no test, or whose green tests prove nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category, Owner
from pytest_planverify.diagnosis.rule import Hit, Reader, Rule
from pytest_planverify.diagnosis.wording import nearest, quote

if TYPE_CHECKING:
    from planner.model.evidence import Selector
    from pytest_planverify.diagnosis.reading import Case

_PROBLEM_PHRASES: dict[str, str] = {
    "missing_file": "{text} does not exist",
    "missing_id": "{text} names a test that does not exist",
    "no_match": "{text} matches no test",
    "bad_expression": "{text} is not an expression that pytest understands",
    "empty": "{text} holds no test",
    "unknown_option": "pytest does not know the option {text} of the command",
}
_MISSING_IMPORT = re.compile(r"^(?:Skipped: )?could not import '(?P<module>[^']+)'")
_PLATFORM = re.compile(
    r"\b(?:windows|win32|linux|macos|darwin|posix|platform|python ?[<>]?=? ?\d|not installed|not available|"
    r"requires|require|needs|missing|unavailable)\b",
    re.IGNORECASE,
)
_EXIT_NO_TESTS = 5


def _selector_with(problems: frozenset[str]) -> Reader:
    def read(case: Case) -> Hit | None:
        found = [selector for selector in case.evidence.selectors if selector.problem in problems]
        if not found:
            return None
        rest = f" So do {len(found) - 1} more selections of the command." if len(found) > 1 else ""
        first = found[0]
        path = first.text.partition("::")[0]
        where = None if path.startswith("-") else Location(path=path)
        return Hit(suggestion=f"{_phrase(first)}{nearest(first.nearest)}.{rest}", location=where)

    return read


_named_nothing = _selector_with(frozenset({"no_match", "empty"}))


def _phrase(selector: Selector) -> str:
    return _PROBLEM_PHRASES.get(selector.problem, "{text}: " + selector.problem).format(text=selector.text)


def _empty_selector(case: Case) -> Hit | None:
    """Tests that were skipped or expected to fail were selected, so the selection is not to blame."""
    if case.evidence.vacuous in ("all_skipped", "only_xfailed"):
        return None
    return _named_nothing(case)


def _nothing_collected(case: Case) -> Hit | None:
    silent = case.evidence.kind is EvidenceKind.SESSION and case.process.exit_code == _EXIT_NO_TESTS
    if case.evidence.vacuous != "nothing_collected" and not silent:
        return None
    return Hit(suggestion=f"No test of {_command(case)} ran: write the test or correct the selection.")


def _skipped_for_the_machine(case: Case) -> Hit | None:
    if case.evidence.vacuous != "all_skipped":
        return None
    for reason in case.evidence.skip_reasons:
        if found := _MISSING_IMPORT.match(reason):
            return Hit(
                suggestion=f"Every test was skipped because {found['module']} cannot be imported: "
                f"install it, "
                "or select tests that can run here."
            )
        if _PLATFORM.search(reason):
            return Hit(
                suggestion=f"Every test was skipped on this machine: {quote(reason)}. "
                "Run it where the tests can run, or select others.",
                weight=0.9,
            )
    return None


def _all_skipped(case: Case) -> Hit | None:
    if case.evidence.vacuous != "all_skipped":
        return None
    reason = quote("; ".join(case.evidence.skip_reasons) or "no reason given")
    return Hit(suggestion=f"Every test of {_command(case)} was skipped: {reason}.")


def _only_xfailed(case: Case) -> Hit | None:
    if case.evidence.vacuous != "only_xfailed":
        return None
    return Hit(
        suggestion=f"Every test of {_command(case)} is expected to fail: take the xfail marks off "
        "the tests that shall prove the todo."
    )


def _command(case: Case) -> str:
    """What the criterion names, as far as it names anything."""
    command = case.evidence.command
    words = [selector.text for selector in case.evidence.selectors] or (command.argv if command else ())
    return quote(" ".join(words)) or "the command"


def _other_selection(case: Case) -> Hit | None:
    if case.evidence.kind is not EvidenceKind.SELECTION:
        return None
    said = quote(case.evidence.headline)
    return Hit(
        suggestion=f"The command selected nothing that proves the todo{': ' + said if said else ''}."
    )


SELECTION_RULES: tuple[Rule, ...] = (
    Rule(
        id="test-id-missing",
        because="The command names a file or a test that does not exist.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.97,
        read=_selector_with(frozenset({"missing_file", "missing_id"})),
    ),
    Rule(
        id="selection-unreadable",
        because="The command has an expression or an option that pytest does not understand.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.95,
        read=_selector_with(frozenset({"bad_expression", "unknown_option"})),
    ),
    Rule(
        id="selection-empty",
        because="The command's selection matches no test.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.95,
        read=_empty_selector,
    ),
    Rule(
        id="nothing-collected",
        because="The session ended without a single test.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.93,
        read=_nothing_collected,
    ),
    Rule(
        id="skipped-for-the-machine",
        because="All tests were skipped, and their reasons say that this machine lacks something.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.75,
        owner=Owner.ENVIRONMENT,
        runner_up=(Category.ENVIRONMENT_ERROR, 0.5),
        read=_skipped_for_the_machine,
    ),
    Rule(
        id="all-skipped",
        because="All tests were skipped, so nothing was proved.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.9,
        owner=Owner.TEST,
        read=_all_skipped,
    ),
    Rule(
        id="only-expected-failures",
        because="All tests are expected to fail, so nothing was proved.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.9,
        owner=Owner.TEST,
        read=_only_xfailed,
    ),
    Rule(
        id="selection-proves-nothing",
        because="The command's selection proves nothing.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.8,
        read=_other_selection,
    ),
)
