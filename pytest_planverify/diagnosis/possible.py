"""Which categories the hard facts of a failure leave open: what a correction says must be among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.taxonomy import Category
from pytest_planverify.diagnosis.reading import Case, is_a

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.model.evidence import Evidence, ExceptionFact

_FILE_ERRORS = ("builtins.FileNotFoundError", "builtins.ModuleNotFoundError")
_KIND_ERRORS = ("builtins.TypeError", "builtins.AttributeError")


def is_possible(category: Category, evidence: Evidence) -> bool:
    """Whether nothing that was observed stands against the category.

    What takes proof, as flakiness, a violation or a budget does, is never possible by somebody's word.
    """
    holds = _POSSIBLE.get(category)
    return holds is not None and holds(Case.of(evidence))


def _errors(case: Case) -> Iterator[ExceptionFact]:
    if case.error is not None:
        yield case.error
    yield from case.deeper


def _has_error(*names: str) -> Callable[[Case], bool]:
    return lambda case: any(is_a(error, *names) for error in _errors(case))


def _has_tool(case: Case, *purposes: str) -> bool:
    command = case.evidence.command
    return command is not None and command.purpose in purposes


def _is_tool(*purposes: str) -> Callable[[Case], bool]:
    return lambda case: _has_tool(case, *purposes)


def _timed_out(case: Case) -> bool:
    return case.evidence.timed_out or case.evidence.swallowed_timeout or case.process.timed_out


def _died(case: Case) -> bool:
    return case.process.signal is not None or (
        case.process.exit_code is not None and not case.process.complete
    )


def _compiles(case: Case) -> bool:
    return _has_error("builtins.SyntaxError")(case) or _has_tool(case, "build", "validate", "test")


def _types(case: Case) -> bool:
    return _has_error(*_KIND_ERRORS)(case) or _has_tool(case, "type_check", "build")


def _imports(case: Case) -> bool:
    return _has_error("builtins.ImportError")(case) or case.evidence.command is not None


def _misses_file(case: Case) -> bool:
    return case.evidence.artifact is not None or _has_error(*_FILE_ERRORS)(case)


def _behaves(case: Case) -> bool:
    """Something was asked of the product, and it was not done: a test ran, or a tool that runs tests."""
    return case.error is not None or _has_tool(case, "test", "validate", "build") or _is_asked(case)


def _is_asked(case: Case) -> bool:
    return case.evidence.kind is EvidenceKind.MANUAL


def _promises(case: Case) -> bool:
    return case.error is not None or case.evidence.contract is not None or case.evidence.command is not None


_POSSIBLE: dict[Category, Callable[[Case], bool]] = {
    Category.TEST_REGRESSION: _behaves,
    Category.TEST_TIMEOUT: _timed_out,
    Category.TEST_CRASH: _died,
    Category.TEST_NOT_FOUND: lambda case: bool(case.evidence.selectors or case.evidence.vacuous),
    Category.COMPILATION_ERROR: _compiles,
    Category.TYPE_ERROR: _types,
    Category.LINT_ERROR: _is_tool("lint", "format"),
    Category.IMPORT_ERROR: _imports,
    Category.SPEC_MISMATCH: _promises,
    Category.ARTIFACT_MISSING: _misses_file,
    Category.METRIC_UNMET: lambda case: case.evidence.metric is not None,
    Category.ENVIRONMENT_ERROR: lambda case: True,
}
"""What has to be seen for each. The others take proof that no word replaces: flakiness both answers,
violations and budgets a guard that saw them, a fault of the harness one that it knows of itself."""
