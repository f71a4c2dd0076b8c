"""Rules for exceeded time limits, processes that died, sessions that did not start, and repeated runs."""

from __future__ import annotations

import errno
import re
from itertools import takewhile
from typing import TYPE_CHECKING

from planner.model.outcome import Location
from planner.model.taxonomy import Category as C
from planner.model.taxonomy import Owner, Repeatability
from planner.model.verdicts import EvidenceKind, Side
from pytest_planverify.diagnosis.case import Case, last_frame_of, raises_by_hand, top_level
from pytest_planverify.diagnosis.known import PLUGIN_OF_OPTION, PLUGIN_OF_SETTING
from pytest_planverify.diagnosis.messages import error_text, place, quote
from pytest_planverify.diagnosis.rule import Hit, Rules

if TYPE_CHECKING:
    from planner.model.evidence import Frame

STARTING_RULES = Rules()
"""For sessions that did not start."""
REPETITION_RULES = Rules()
"""For failures with confirming runs."""
TIMEOUT_RULES = Rules()
PROCESS_RULES = Rules()
EARLY_END_RULES = Rules()
"""For processes that ended before their session was finished."""
SESSION_FALLBACKS = Rules()
"""For failed sessions that no other rule explains."""

_CRASH_SIGNALS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGTRAP"})
"""Signals that a process causes itself, by a fault or by ``abort``."""
_FROM_A_TERMINAL = ("SIGINT", "SIGHUP", "SIGQUIT")
_INTERRUPTED, _INTERNAL, _USAGE = 2, 3, 4  # exit codes of pytest
_LEAVING = ("builtins.SystemExit", "_pytest.outcomes.Exit", "builtins.KeyboardInterrupt")
_OURSELVES = frozenset({"pytest_planverify", "planner"})
_OUR_PATH = re.compile(r"(?:^|/)(?:pytest_planverify|planner)/")
_PROOF_AT = 3
"""Number of runs with mixed results that proves flakiness without doubt."""

_UNRECOGNIZED = re.compile(r"^(?:.*: )?error: unrecognized arguments?: (?P<options>.+)$")
_UNKNOWN_SETTING = re.compile(r"^(?:.*: )?Unknown config option: (?P<name>\S+)$")
_NO_PYTEST = re.compile(
    r"^(?:/.*/)?\S*python[\w.\-]*: No module named '?(?P<module>_?pytest|pluggy|iniconfig)'?$"
)
_BAD_EXPRESSION = re.compile(r"^(?:ERROR: )?Wrong expression passed to '(?P<option>-[km])': (?P<why>.+)$")
_NO_FILE = re.compile(r"^(?:ERROR: )?(?:file or directory not found|not found): (?P<what>.+)$")


def _match_in_output(case: Case, pattern: re.Pattern[str]) -> re.Match[str] | None:
    """Return the match of the first matching line in the session's report or streams, or ``None``."""
    evidence = case.evidence
    for text in (evidence.longrepr, evidence.stderr_tail, evidence.stdout_tail):
        for line in text.splitlines():
            if found := pattern.match(line.strip()):
                return found
    return None


@STARTING_RULES.rule(C.ENVIRONMENT_ERROR, 0.92)
def option_of_absent_plugin(case: Case) -> Hit | None:
    """pytest was given an option that no installed plugin knows."""
    found = _match_in_output(case, _UNRECOGNIZED)
    if found is None:
        return None
    options = found["options"].split()
    plugins = dict.fromkeys(
        plugin
        for option in options
        for start, plugin in PLUGIN_OF_OPTION.items()
        if option.startswith(start) and (start.startswith("--") or option.rstrip("0123456789") == start)
    )
    brings = ", ".join(plugins) or "the plugin that defines it, or remove it"
    # Without values, since a worker's options contain paths that the user did not write.
    names = dict.fromkeys(option.partition("=")[0] for option in options if option.startswith("-"))
    written = _added_setting(case, next(iter(names), options[0]))
    giver = f"which {written.path}:{written.line} now gives" if written else "of the command or of addopts"
    return Hit(
        suggestion=f"pytest does not know {quote(', '.join(names or options))}{', ' if written else ' '}"
        f"{giver}: install {brings}.",
        weight=1.0 if plugins else 0.85,
        location=written,
    )


def _added_setting(case: Case, word: str) -> Location | None:
    """Return the line of a changed file, neither product nor test, that the change added with a word."""
    for hunk in case.evidence.hunks:
        lines = hunk.text.splitlines() if hunk.side is None else []
        # The hunk's line is that of its first change, which unchanged lines precede in the text.
        line = hunk.line - len(list(takewhile(lambda text: text.startswith(" "), lines)))
        for text in lines:
            if text.startswith("+") and word in text:
                return Location(path=hunk.path, line=line)
            line += text.startswith((" ", "+"))
    return None


@STARTING_RULES.rule(C.ENVIRONMENT_ERROR, 0.92)
def setting_of_absent_plugin(case: Case) -> Hit | None:
    """The ini file has a setting that no installed plugin knows, and unknown ones are errors."""
    found = _match_in_output(case, _UNKNOWN_SETTING)
    if found is None:
        return None
    plugin = PLUGIN_OF_SETTING.get(found["name"])
    written = _added_setting(case, found["name"])
    file = f"{written.path}:{written.line}, which was changed" if written else "its ini file"
    return Hit(
        suggestion=f"pytest does not know the setting {quote(found['name'])} of {file}: install "
        f"{plugin or 'the plugin that defines it, or remove it'}.",
        weight=1.0 if plugin else 0.85,
        location=written,
    )


@STARTING_RULES.rule(C.ENVIRONMENT_ERROR, 0.97)
def pytest_not_installed(case: Case) -> str | None:
    """The interpreter of the command cannot start pytest."""
    found = _match_in_output(case, _NO_PYTEST)
    return (
        found and f"The interpreter of the command does not have {found['module']}: install pytest there."
    )


@STARTING_RULES.rule(C.TEST_NOT_FOUND, 0.95)
def argument_refused(case: Case) -> Hit | str | None:
    """pytest was given a file that does not exist, or an expression that it cannot read."""
    if found := _match_in_output(case, _NO_FILE):
        path = found["what"].partition("::")[0]
        named = f"The command names {found['what']}, which does not exist."
        return Hit(suggestion=named, location=Location(path=path))
    found = _match_in_output(case, _BAD_EXPRESSION)
    return found and f"pytest cannot read the expression after {found['option']}: {quote(found['why'])}."


@REPETITION_RULES.rule(C.FLAKY_TEST, 0.95, second=(C.TEST_REGRESSION, 0.1))
def both_answers(case: Case) -> Hit | None:
    """The same code gave both answers."""
    if case.repeatability is not Repeatability.FLAKY:
        return None
    evidence, runs = case.evidence, case.evidence.confirmations
    name = evidence.nodeid or next(iter(evidence.tests), None) or evidence.check_id or "the check"
    headline = quote(evidence.headline, 100)
    by_product = case.in_product and not case.is_error("builtins.AssertionError")
    by_product = by_product and not raises_by_hand(case.raised_at)
    # If only the product was changed, that change is presumed to have introduced randomness or state.
    is_products = by_product or (case.product_changed and not case.tests_changed)
    by_chance = f"; its failure: {headline}" if headline else ""
    return Hit(
        suggestion=f"{quote(name)} passed {sum(run.passed for run in runs)} of {len(runs)} times on the "
        f"same code{by_chance}. Check it for time, randomness, order of sets, threads or network.",
        owner=Owner.PRODUCT if is_products else None,
        weight=1.0 if len(runs) >= _PROOF_AT else 0.9,
    )


@REPETITION_RULES.rule(
    C.TEST_REGRESSION, 0.75, about=("builtins.MemoryError",), second=(C.ENVIRONMENT_ERROR, 0.25)
)
def memory_asked_for(case: Case) -> Hit | None:
    """Memory ran out each time that it was run, or in product code that was changed."""
    # A single failure may come from a machine short of memory; repeated ones from an excessive request.
    if case.in_nobody or case.is_by_hand:
        return None
    if not case.happened_again and not (case.in_product and case.raised_in_changed):
        return None
    return Hit(
        suggestion=f"{place(case.raised_at)} requests more memory than available.",
        owner=Owner.TEST if case.in_test else None,
    )


def _what(case: Case) -> str:
    """Return the subject of a sentence: the test, the command, the check or the session."""
    evidence = case.evidence
    if evidence.nodeid:
        return evidence.nodeid
    return " ".join(evidence.command.argv) if evidence.command else evidence.check_id or "The session"


def _owner_at(case: Case, frame: Frame | None) -> Owner | None:
    """Return the owner of a process that ended in a frame; ``None`` for the category's default.

    In a test frame the test; but the product, if it changed and the test did not: the test then waited for
    the product.
    """
    if frame is None or frame.side is not Side.TEST:
        return None
    return Owner.PRODUCT if case.product_changed and not case.is_changed(frame.path) else Owner.TEST


@TIMEOUT_RULES.rule(C.TEST_TIMEOUT, 0.96)
def limit_passed(case: Case) -> Hit:
    """A time limit was passed, whether or not the test noticed."""
    evidence, frames = case.evidence, case.error.frames
    frame = last_frame_of(frames, Side.PRODUCT) or case.stuck_at or last_frame_of(frames, Side.TEST)
    limit = f" of {evidence.limit_seconds:g} s" if evidence.limit_seconds else ""
    # The test's own duration may be shorter than the limit, which includes what runs around it.
    duration = evidence.duration_seconds or 0
    took = f" after {duration:.1f} s" if duration > (evidence.limit_seconds or 0) else ""
    if evidence.swallowed_timeout:
        how = ", but reports a pass: its code catches the timeout and continues."
    elif frame is None:
        how = ". The place is not known."
    elif frame.side is Side.PRODUCT:
        how = f". It was still in {place(frame)}: find out why that does not end."
    else:
        how = f". It was stopped in {place(frame)}."
    return Hit(
        suggestion=f"{_what(case)} exceeded its limit{limit}{took}{how}",
        frame=frame,
        owner=_owner_at(case, frame),
    )


@PROCESS_RULES.rule(C.TEST_CRASH, 0.96)
def crash_signal(case: Case) -> Hit | None:
    """The process ended by a signal that its own doing brings."""
    if case.process.signal not in _CRASH_SIGNALS:
        return None
    frame = case.stuck_at
    stood = f" in {place(frame)}" if frame else ""
    return Hit(
        suggestion=(
            f"{_what(case)} was killed by {case.process.signal}{stood}: run it alone with faulthandler."
        ),
        frame=frame,
        owner=_owner_at(case, frame),
    )


@PROCESS_RULES.rule(C.TEST_CRASH, 0.85, about=_LEAVING)
def session_ended_by_project(case: Case) -> Hit | None:
    """Code of the project ended the session on purpose."""
    kind = case.evidence.kind
    if case.in_nobody or kind is EvidenceKind.COMMAND:
        return None
    if kind is EvidenceKind.TEST and case.evidence.process is None:
        return None  # only the test ended, not its session
    is_interrupt = case.is_error("builtins.KeyboardInterrupt") and kind is EvidenceKind.SESSION
    if is_interrupt and not case.happened_again:
        return None  # a single interrupt is probably a person's
    return Hit(
        suggestion=f"{place(case.raised_at)} ended the whole session: "
        f"{quote(f'{case.error.type}({case.error.message})')}.",
        owner=_owner_at(case, case.raised_at),
        frame=case.raised_at,
    )


@PROCESS_RULES.rule(C.ENVIRONMENT_ERROR, 0.7, second=(C.TEST_CRASH, 0.2))
def interrupted(case: Case) -> str | None:
    """Somebody interrupted the run."""
    is_session = case.evidence.kind is EvidenceKind.SESSION
    by_itself = case.happened_again and case.evidence.kind is not EvidenceKind.COMMAND
    by_signal = case.process.signal in _FROM_A_TERMINAL and not by_itself
    if not by_signal and not (is_session and case.is_error("builtins.KeyboardInterrupt")):
        return None
    return f"{_what(case)} was interrupted from outside: run it again."


@PROCESS_RULES.rule(C.TEST_CRASH, 0.65, second=(C.ENVIRONMENT_ERROR, 0.35))
def killed(case: Case) -> Hit | None:
    """The process was killed, and not by this run."""
    signal = case.process.signal
    if signal is None:
        return None
    hint = "; the system kills processes like this when memory is low" if signal == "SIGKILL" else ""
    return Hit(suggestion=f"{_what(case)} was killed by {signal}{hint}.", frame=case.stuck_at)


@PROCESS_RULES.rule(C.HARNESS_ERROR, 0.9)
def own_internal_error(case: Case) -> Hit | None:
    """The error was raised by this plugin."""
    if not case.has_error or not (case.in_nobody or case.evidence.kind is EvidenceKind.SESSION):
        return None
    last = next((frame for frame in reversed(case.frames) if frame.side is not Side.STDLIB), None)
    if last is None or last.side is not Side.FRAMEWORK:
        return None
    if top_level(last.module or "") not in _OURSELVES and not _OUR_PATH.search(last.path):
        return None
    return Hit(
        suggestion=(
            f"pytest-planverify failed in {place(last)}: {error_text(case.error)}. Report it; the "
            "project is not at fault."
        ),
        frame=last,
    )


@PROCESS_RULES.rule(
    C.TEST_CRASH,
    0.8,
    about=("builtins.SystemExit",),
    owner=Owner.TEST,
    second=(C.TEST_REGRESSION, 0.2),
)
def left_by_test(case: Case) -> str | None:
    """The test, or what prepares it, leaves the program."""
    if case.evidence.kind is not EvidenceKind.TEST or not case.in_test:
        return None
    return f"{place(case.raised_at)} ends the program: {error_text(case.error)}."


@PROCESS_RULES.rule(
    C.TEST_CRASH,
    0.8,
    about=("builtins.ValueError", "builtins.OSError"),
    owner=Owner.TEST,
    second=(C.ENVIRONMENT_ERROR, 0.2),
)
def output_closed(case: Case) -> Hit | None:
    """Standard output was closed while pytest was still using it."""
    error, last = case.error, case.innermost
    if last is None or not last.path.endswith("_pytest/capture.py"):
        return None
    if error.message != "I/O operation on closed file" and error.errno != errno.EBADF:
        return None
    return Hit(
        suggestion=f"{_what(case)} closes sys.stdout or sys.stderr.",
        owner=Owner.PRODUCT if case.product_changed and not case.tests_changed else None,
    )


@EARLY_END_RULES.rule(C.TEST_CRASH, 0.85, second=(C.HYGIENE_VIOLATION, 0.2))
def process_left_early(case: Case) -> Hit | None:
    """The process ended before its session said that it was over."""
    process, kind = case.process, case.evidence.kind
    if process.complete or case.has_error:
        return None
    if kind not in (EvidenceKind.SESSION, EvidenceKind.TEST, EvidenceKind.COLLECTION):
        return None
    if kind is EvidenceKind.SESSION and process.exit_code in (_INTERRUPTED, _INTERNAL, _USAGE):
        return None  # pytest ended the session itself, and reported why
    frame = case.stuck_at
    code = "no exit code" if process.exit_code is None else f"exit code {process.exit_code}"
    return Hit(
        suggestion=f"{_what(case)}: the process ended with {code} before the session was finished; look "
        "for os._exit, sys.exit or a crash in native code.",
        frame=frame,
        owner=_owner_at(case, frame),
        weight=0.8 if process.exit_code is None else 1.0,
    )


@SESSION_FALLBACKS.rule(C.ENVIRONMENT_ERROR, 0.6, second=(C.TEST_NOT_FOUND, 0.3))
def usage_error(case: Case) -> str | None:
    """pytest rejected its arguments or its configuration."""
    if case.process.exit_code != _USAGE or case.has_error:
        return None
    detail = quote(case.evidence.headline)
    return f"pytest rejected its arguments or its configuration{f': {detail}' if detail else ''}."


@SESSION_FALLBACKS.rule(C.HARNESS_ERROR, 0.5, second=(C.ENVIRONMENT_ERROR, 0.4))
def unexplained_internal_error(case: Case) -> str | None:
    """The session ended with an internal error that left no trace."""
    if case.process.exit_code != _INTERNAL or case.has_error:
        return None
    detail = quote(case.evidence.headline)
    return f"pytest ended with an internal error that it did not explain{f': {detail}' if detail else ''}."


@SESSION_FALLBACKS.rule(C.TEST_REGRESSION, 0.4, owner=Owner.UNKNOWN, second=(C.ENVIRONMENT_ERROR, 0.3))
def red_without_a_failure(case: Case) -> str | None:
    """The session ended red although no test failed."""
    if not case.process.complete or not case.process.exit_code or case.has_error:
        return None
    return (
        f"The session ended with exit code {case.process.exit_code} without a failing test: a hook "
        "of the project or a threshold of a plugin, such as coverage, set it."
    )
