"""Rules for sessions that did not begin as they were asked to: what pytest was given is not there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.model.kinds import EvidenceKind
from planner.model.outcome import Location
from planner.model.taxonomy import Category
from pytest_planverify.diagnosis.known import PLUGIN_OF_OPTION
from pytest_planverify.diagnosis.rule import Hit, Rule
from pytest_planverify.diagnosis.wording import quote

if TYPE_CHECKING:
    from pytest_planverify.diagnosis.reading import Case

_UNRECOGNIZED = re.compile(r"^(?:.*: )?error: unrecognized arguments?: (?P<options>.+)$")
_REQUIRED_PLUGINS = re.compile(r"^(?:ERROR: )?Missing required plugins: (?P<plugins>.+)$")
_NO_PYTEST = re.compile(r"^\S*python[\w.\-]*: No module named '?(?P<module>_?pytest|pluggy|iniconfig)'?$")
_BAD_EXPRESSION = re.compile(r"^(?:ERROR: )?Wrong expression passed to '(?P<option>-[km])': (?P<why>.+)$")
_NO_FILE = re.compile(r"^(?:ERROR: )?(?:file or directory not found|not found): (?P<what>.+)$")


def _line(case: Case, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """The first line of the session's own complaint that matches as a whole."""
    for text in (case.evidence.longrepr, case.evidence.stderr_tail, case.evidence.stdout_tail):
        for line in text.splitlines():
            if found := pattern.match(line.strip()):
                return found
    return None


def _absent_plugin(case: Case) -> Hit | None:
    found = _line(case, _UNRECOGNIZED)
    if found is None or case.evidence.kind is not EvidenceKind.SESSION:
        return None
    options = found["options"].split()
    plugins = dict.fromkeys(
        plugin
        for option in options
        for start, plugin in PLUGIN_OF_OPTION.items()
        if option.startswith(start) and (start.startswith("--") or option.rstrip("0123456789") == start)
    )
    brings = (
        f": install {', '.join(plugins)}" if plugins else ": install the plugin that brings it, or drop it"
    )
    return Hit(
        suggestion=f"pytest does not know the option {quote(' '.join(options))} of the command or of "
        f"addopts{brings}.",
        weight=1.0 if plugins else 0.85,
    )


def _required_plugin(case: Case) -> Hit | None:
    found = _line(case, _REQUIRED_PLUGINS) if case.evidence.kind is EvidenceKind.SESSION else None
    return (
        Hit(suggestion=f"The project requires plugins that are not here: {found['plugins']}.")
        if found
        else None
    )


def _no_pytest(case: Case) -> Hit | None:
    found = _line(case, _NO_PYTEST)
    if found is None or case.evidence.kind is not EvidenceKind.SESSION:
        return None
    return Hit(suggestion=f"The interpreter of the command has no {found['module']}: install pytest there.")


def _no_such_file(case: Case) -> Hit | None:
    found = _line(case, _NO_FILE) if case.evidence.kind is EvidenceKind.SESSION else None
    if found is None:
        return None
    return Hit(
        suggestion=f"The command names {found['what']}, which does not exist.",
        location=Location(path=found["what"].partition("::")[0]),
    )


def _bad_expression(case: Case) -> Hit | None:
    found = _line(case, _BAD_EXPRESSION) if case.evidence.kind is EvidenceKind.SESSION else None
    if found is None:
        return None
    return Hit(
        suggestion=f"pytest cannot read the expression after {found['option']}: {quote(found['why'])}."
    )


STARTING_RULES: tuple[Rule, ...] = (
    Rule(
        id="option-of-absent-plugin",
        because="pytest was given an option that no installed plugin knows.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.92,
        read=_absent_plugin,
    ),
    Rule(
        id="required-plugin-absent",
        because="The project's required_plugins are not installed.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.96,
        read=_required_plugin,
    ),
    Rule(
        id="pytest-not-installed",
        because="The interpreter of the command cannot start pytest.",
        category=Category.ENVIRONMENT_ERROR,
        confidence=0.97,
        read=_no_pytest,
    ),
    Rule(
        id="argument-not-found",
        because="pytest was given a file or node id that does not exist.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.95,
        read=_no_such_file,
    ),
    Rule(
        id="expression-refused",
        because="pytest was given an expression after -k or -m that it cannot read.",
        category=Category.TEST_NOT_FOUND,
        confidence=0.95,
        read=_bad_expression,
    ),
)
