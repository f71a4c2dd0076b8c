"""What is captured about a failure while it happens: from pytest's items, calls and reports to evidence."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, cast

import pytest

from planner.model.kinds import EvidenceKind, Phase
from pytest_planverify.observe import facts
from pytest_planverify.observe.exception_facts import (
    chain_of,
    fact,
    leaves_of,
)
from pytest_planverify.observe.hostile import readable
from pytest_planverify.observe.project_map import ProjectMap
from pytest_planverify.observe.subjects import subjects_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_planverify.observe.facts import Facts

__all__ = [
    "ProjectMap",
    "collection_evidence",
    "exception_facts",
    "headline",
    "startup_evidence",
    "test_evidence",
]

_LONGEST_RENDERING = 8_000
_LONGEST_OUTPUT = 4_000
_LONGEST_HEADLINE = 300
_MOST_FIXTURES = 500
_STRICT_XPASS = "[XPASS(strict)]"
_TIMEOUT_MODULE = "pytest_timeout"
_LIMIT = re.compile(r"^Timeout \(?>(?P<seconds>\d+(?:\.\d+)?)s\)?")
_PHASES = {phase.value: phase for phase in Phase}


def exception_facts(
    exception: pytest.ExceptionInfo[BaseException] | BaseException, project: ProjectMap
) -> tuple[tuple[Facts, ...], tuple[Facts, ...]]:
    """The chain of exceptions, the one that surfaced first, and the leaves of every group in it."""
    surfaced = exception if isinstance(exception, BaseException) else exception.value
    chain = chain_of(surfaced)
    leaves = [leaf for link in chain for leaf in leaves_of(link)]
    return tuple(fact(link, project) for link in chain), tuple(fact(leaf, project) for leaf in leaves)


def headline(error: Facts) -> str:
    """The line that a person would quote: ``AssertionError: assert 32.1 == 28.5``."""
    lines = [line for line in error.message.splitlines() if line.strip()]
    first = lines[0].strip() if lines else ""
    compared = next((line.strip() for line in lines[1:] if line.startswith("assert ")), "")
    text = f"{first} ({compared})" if compared and not first.startswith("assert ") else first
    return readable(f"{error.type}: {text}" if text else error.type, _LONGEST_HEADLINE)


def test_evidence(
    item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport, project: ProjectMap
) -> Facts:
    """What is known of a failed set-up, call or teardown of a test."""
    project = _with_module_of(item, project)
    excinfo = call.excinfo
    chain, leaves = exception_facts(excinfo, project) if excinfo is not None else ((), ())
    rendering = _rendering(report)
    limit = _timeout_of(chain)
    return facts.evidence(
        kind=EvidenceKind.TEST,
        phase=_PHASES.get(str(report.when)),
        nodeid=readable(report.nodeid),
        exceptions=chain,
        exceptions_in_group=leaves,
        headline=headline(chain[0]) if chain else _first_line(rendering),
        longrepr=rendering,
        stdout_tail=_tail(_section(report, "stdout")),
        stderr_tail=_tail(_section(report, "stderr")),
        limit_seconds=limit or None,
        duration_seconds=call.duration,
        timed_out=limit is not None,
        strict_xpass=excinfo is None and rendering.startswith(_STRICT_XPASS),
        first_party=tuple(sorted(project.first_party)),
        test_packages=tuple(sorted(project.test_packages)),
        fixtures=tuple(_names(getattr(item, "fixturenames", ()))),
        known_fixtures=_known_fixtures(excinfo),
        subjects=_subjects(excinfo, project),
        tests=(readable(report.nodeid),),
    )


test_evidence.__test__ = False  # type: ignore[attr-defined]  # its name begins like a test's


def collection_evidence(
    collector: pytest.Collector, report: pytest.CollectReport, project: ProjectMap
) -> Facts:
    """What is known of a failed collection; its error is that of the report's ``call``."""
    project = _with_module_of(collector, project)
    call = cast("pytest.CallInfo[Any] | None", getattr(report, "call", None))
    excinfo = call.excinfo if call is not None else None
    chain, leaves = exception_facts(excinfo, project) if excinfo is not None else ((), ())
    rendering = _rendering(report)
    return facts.evidence(
        kind=EvidenceKind.COLLECTION,
        phase=Phase.COLLECT,
        nodeid=readable(report.nodeid),
        exceptions=chain,
        exceptions_in_group=leaves,
        headline=headline(chain[0]) if chain else _first_line(rendering),
        longrepr=rendering,
        stdout_tail=_tail(_section(report, "stdout")),
        stderr_tail=_tail(_section(report, "stderr")),
        duration_seconds=call.duration if call is not None else None,
        first_party=tuple(sorted(project.first_party)),
        test_packages=tuple(sorted(project.test_packages)),
        subjects=_subjects(excinfo, project),
    )


def startup_evidence(error: BaseException, project: ProjectMap) -> Facts:
    """What is known of an error that kept a session from starting, or ended it: a conftest, a plugin."""
    chain, leaves = exception_facts(error, project)
    return facts.evidence(
        kind=EvidenceKind.SESSION,
        phase=Phase.SESSION,
        exceptions=chain,
        exceptions_in_group=leaves,
        headline=headline(chain[0]) if chain else type(error).__name__,
        first_party=tuple(sorted(project.first_party)),
        test_packages=tuple(sorted(project.test_packages)),
    )


def _with_module_of(node: pytest.Item | pytest.Collector, project: ProjectMap) -> ProjectMap:
    """The file that the node was collected from holds tests, unless only its docstrings do."""
    if isinstance(node, (pytest.Function, pytest.Class, pytest.Module)) and not isinstance(
        node, pytest.Package
    ):
        real = os.path.realpath(node.path)
        if not project.is_test(real):
            return project.with_tests([real])
    return project


def _rendering(report: pytest.TestReport | pytest.CollectReport) -> str:
    try:
        text = str(report.longrepr or "")
    except Exception as error:  # the rendering quotes the objects of the test
        text = f"<rendering raised {type(error).__name__}>"
    return readable(text[-_LONGEST_RENDERING:], _LONGEST_RENDERING)


def _section(report: pytest.TestReport | pytest.CollectReport, stream: str) -> str:
    return "".join(text for title, text in report.sections if title.startswith(f"Captured {stream}"))


def _tail(text: str) -> str:
    return readable(text[-_LONGEST_OUTPUT:], _LONGEST_OUTPUT)


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return readable(line, _LONGEST_HEADLINE)


def _timeout_of(chain: tuple[Facts, ...]) -> float | None:
    """The limit in seconds that pytest-timeout enforced, ``None`` where it did not raise this."""
    if not chain or not chain[0].frames or not any(_is_of_timeout(frame) for frame in chain[0].frames[-5:]):
        return None
    found = _LIMIT.match(chain[0].message)
    return float(found["seconds"]) if found else None


def _is_of_timeout(frame: Facts) -> bool:
    return frame.module == _TIMEOUT_MODULE or frame.path.endswith("pytest_timeout.py")


def _names(names: Iterable[object]) -> list[str]:
    return [readable(name, 200) for name in names if isinstance(name, str)][:_MOST_FIXTURES]


def _known_fixtures(excinfo: pytest.ExceptionInfo[BaseException] | None) -> tuple[str, ...]:
    """All fixtures that the test could ask for; told only when it asked for one that is not there."""
    error: Any = excinfo.value if excinfo is not None else None
    if not isinstance(error, pytest.FixtureLookupError):
        return ()
    try:
        manager: Any = error.request._fixturemanager
        if hasattr(manager, "_get_all_fixture_defs_for_node"):
            node = error.request._pyfuncitem.parent
            found = {definition.argname for definition in manager._get_all_fixture_defs_for_node(node)}
        else:
            found = set(manager._arg2fixturedefs)
    except AttributeError:  # private to pytest: without it the diagnosis knows no nearest name
        return ()
    return tuple(sorted(_names(found)))


def _subjects(
    excinfo: pytest.ExceptionInfo[BaseException] | None, project: ProjectMap
) -> tuple[Facts, ...]:
    if excinfo is None:
        return ()
    surfaced = chain_of(excinfo.value)[0]
    return subjects_of(surfaced, project)
